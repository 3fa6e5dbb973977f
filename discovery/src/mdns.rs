//! The LAN source: DNS-SD over multicast DNS, by a daemon thread that may fail at any time.
//!
//! The driver makes the daemon agree with the wish: none while nobody asks for anything, so that
//! the node is silent; one that announces, browses or both otherwise. A daemon that refuses, dies
//! or panics is made anew with growing pauses and a word in the status; nothing of that reaches
//! the node. What the daemon hears is decoded by [`crate::record`] and only ever a sighting.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use mdns_sd::{
    DaemonEvent, IfKind, IfPredicate, Receiver, ResolvedService, ScopedIp, ServiceDaemon,
    ServiceEvent, ServiceInfo,
};
use nexus_rt::{Backoff, CancellationToken, Clock};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::interfaces;
use crate::record::{Record, RecordError};
use crate::source::{Activity, Announcement, Sink, Wish};

/// The service type of every nexus node.
pub const SERVICE: &str = "_nexus._udp.local.";
/// A goodbye or the end of the daemon is not waited for longer.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);
/// The daemon repeats a goodbye after 120 ms, in case the first was lost.
const FAREWELL_REPEAT: Duration = Duration::from_millis(150);
/// The subscription is made anew this often, since a record that is merely renewed is not told.
const REFRESH: Duration = Duration::from_secs(1800);
/// A daemon that ran so long was well: a hostile packet that kills it at once does not count.
const STEADY: Duration = Duration::from_secs(60);
/// How long a doubted announcement may stay without an answer.
const VERIFY_LIMIT: Duration = Duration::from_secs(10);
/// The daemon asks for each interface by itself; within this time the list is not made again.
const PICK_MILLIS: u64 = 1000;

/// Where multicast is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// On the real interfaces; in a container on the only one.
    #[default]
    Lan,
    /// On loopback only: several nodes on one machine, and tests.
    Loopback,
}

/// Settings of the LAN source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it speaks.
    pub scope: Scope,
    /// The UDP port: 5353 but in tests.
    pub port: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self { scope: Scope::Lan, port: mdns_sd::MDNS_PORT }
    }
}

/// Why the daemon is not as it should be.
#[derive(Debug, thiserror::Error)]
enum MdnsError {
    #[error("multicast DNS cannot start")]
    Start(#[source] mdns_sd::Error),
    #[error("the LAN cannot be browsed")]
    Browse(#[source] mdns_sd::Error),
    #[error("this node cannot be announced")]
    Announce(#[source] mdns_sd::Error),
}

/// Runs the source until the token is cancelled or nobody holds the wish any more.
pub(crate) async fn run(
    options: Options,
    wish: watch::Receiver<Wish>,
    doubts: mpsc::Receiver<String>,
    sink: Sink,
    token: CancellationToken,
) {
    let mut driver = Driver::new(options, wish, doubts, sink);
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(60));
    // A panic here would leave the node deaf until its next start; the state is made anew instead.
    while let Err(_panic) = AssertUnwindSafe(driver.follow(&token)).catch_unwind().await {
        driver.sink.trouble("the mDNS driver panicked and begins anew".to_owned());
        driver.live = None;
        let pause = backoff.next();
        if token.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// What the driver woke up for.
enum Wake {
    Stop,
    Look,
    Service(ServiceEvent),
    Daemon(DaemonEvent),
    /// The daemon closed a channel: the reader was slow, or the daemon is dead.
    Closed,
    Doubt(String),
}

struct Driver {
    options: Options,
    wish: watch::Receiver<Wish>,
    doubts: mpsc::Receiver<String>,
    sink: Sink,
    live: Option<Live>,
    rebuilds: u64,
    backoff: Backoff,
    /// Nothing is tried before this, after something failed.
    retry_at: Option<Instant>,
}

/// A running daemon and what it was told so far.
struct Live {
    daemon: ServiceDaemon,
    monitor: Receiver<DaemonEvent>,
    browse: Option<Receiver<ServiceEvent>>,
    since: Instant,
    refresh_at: Instant,
    announced: Option<(Announcement, String)>,
}

impl Driver {
    fn new(
        options: Options,
        wish: watch::Receiver<Wish>,
        doubts: mpsc::Receiver<String>,
        sink: Sink,
    ) -> Self {
        let backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(60));
        Self { options, wish, doubts, sink, live: None, rebuilds: 0, backoff, retry_at: None }
    }

    async fn follow(&mut self, token: &CancellationToken) {
        loop {
            self.reconcile().await;
            match self.next_wake(token).await {
                Wake::Stop => break,
                Wake::Look => {}
                Wake::Service(event) => self.on_service(event),
                Wake::Daemon(event) => self.on_daemon(event),
                Wake::Closed => self.on_closed(),
                Wake::Doubt(instance) => self.verify(&instance),
            }
        }
        self.stop().await;
    }

    async fn next_wake(&mut self, token: &CancellationToken) -> Wake {
        let look_at = match (self.retry_at, &self.live) {
            (Some(at), _) => at,
            (None, Some(live)) => live.refresh_at,
            (None, None) => Instant::now() + REFRESH,
        };
        tokio::select! {
            biased;
            () = token.cancelled() => Wake::Stop,
            changed = self.wish.changed() => if changed.is_ok() { Wake::Look } else { Wake::Stop },
            Some(instance) = self.doubts.recv() => Wake::Doubt(instance),
            wake = hear(self.live.as_ref()) => wake,
            () = tokio::time::sleep_until(look_at) => Wake::Look,
        }
    }

    /// Makes the daemon agree with the wish, as far as it goes now.
    async fn reconcile(&mut self) {
        let wish = self.wish.borrow_and_update().clone();
        if wish.rebuilds != self.rebuilds {
            self.rebuilds = wish.rebuilds;
            self.stop().await;
            self.sink.change(|directory, now| {
                directory.doubt(now);
                false
            });
            self.retry_at = None;
        }
        if wish.is_silent() {
            self.stop().await;
            self.retry_at = None;
            self.sink.report(|status| status.activity = Activity::Silent);
            return;
        }
        if wish.announce.is_none()
            && let Some(mut live) = self.live.take()
        {
            // A goodbye does not wait for the end of a pause.
            self.withdraw(&mut live).await;
            self.live = Some(live);
        }
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.retry_at = None;
        if let Err(error) = self.agree(wish.announce).await {
            self.fail(&error);
        }
    }

    async fn agree(&mut self, wanted: Option<Announcement>) -> Result<(), MdnsError> {
        let mut live = match self.live.take() {
            Some(live) => live,
            None => self.start()?,
        };
        let result = self.adjust(&mut live, wanted).await;
        // What the daemon already announces must be taken back even when the rest failed.
        self.live = Some(live);
        result
    }

    async fn adjust(&self, live: &mut Live, wanted: Option<Announcement>) -> Result<(), MdnsError> {
        if live.browse.is_none() || live.refresh_at <= Instant::now() {
            live.browse = Some(live.daemon.browse(SERVICE).map_err(MdnsError::Browse)?);
            live.refresh_at = Instant::now() + REFRESH;
            self.sink.change(|directory, now| directory.expire(now));
        }
        if let Some((known, _)) = &live.announced {
            if wanted.as_ref() == Some(known) {
                return Ok(());
            }
            let renamed = wanted.as_ref().is_none_or(|new| new.instance() != known.instance());
            if renamed {
                self.withdraw(live).await;
            }
        }
        if let Some(announcement) = wanted {
            let service = service(&announcement).map_err(MdnsError::Announce)?;
            let fullname = service.get_fullname().to_owned();
            live.daemon.register(service).map_err(MdnsError::Announce)?;
            let instance = announcement.instance();
            live.announced = Some((announcement, fullname));
            self.sink.report(|status| status.announced = Some(instance));
        }
        Ok(())
    }

    fn start(&self) -> Result<Live, MdnsError> {
        let port = self.options.port;
        let daemon = ServiceDaemon::new_with_port(port).map_err(MdnsError::Start)?;
        let picker = Picker::new(self.options.scope, Arc::clone(&self.sink.clock));
        let names: Vec<String> = picker.names().into_iter().collect();
        let others = IfPredicate::new(move |own| !picker.names().contains(&own.name));
        let others = IfKind::Predicate(others);
        daemon.disable_interface(others).map_err(MdnsError::Start)?;
        let monitor = daemon.monitor().map_err(MdnsError::Start)?;
        self.sink.look_at_interfaces();
        tracing::info!(interfaces = names.join(" "), port, "mDNS speaks on the LAN");
        self.sink.report(|status| {
            status.activity = Activity::Live;
            status.trouble = None;
            if names.is_empty() {
                status.trouble = Some("no interface leads to a LAN".to_owned());
            }
            status.interfaces = names;
        });
        let now = Instant::now();
        Ok(Live { daemon, monitor, browse: None, since: now, refresh_at: now, announced: None })
    }

    /// Notes a failure; the next try comes after a pause, on a new daemon if this one is dead.
    fn fail(&mut self, error: &MdnsError) {
        self.pause();
        let (MdnsError::Start(source) | MdnsError::Browse(source) | MdnsError::Announce(source)) =
            error;
        // A full command queue is a matter of moments.
        if *source == mdns_sd::Error::Again {
            return;
        }
        if *source == mdns_sd::Error::DaemonShutdown {
            self.drop_daemon();
        }
        self.sink.trouble(format!("{error}: {source}"));
        self.sink.report(|status| status.activity = Activity::Failing);
    }

    /// Sets when to try again; what ran well for a while does not pay for failures before.
    fn pause(&mut self) {
        if self.live.as_ref().is_some_and(|live| live.since.elapsed() >= STEADY) {
            self.backoff.reset();
        }
        self.retry_at = Some(Instant::now() + self.backoff.next());
    }

    fn drop_daemon(&mut self) {
        self.live = None;
        self.sink.report(|status| {
            status.announced = None;
            status.interfaces.clear();
        });
    }

    /// Says goodbye, if this node is announced, and waits until it is said.
    async fn withdraw(&self, live: &mut Live) {
        let Some((_, fullname)) = live.announced.take() else { return };
        match live.daemon.unregister(&fullname) {
            Ok(done) => {
                // A dead daemon ends the wait at once: its end of the channel is gone.
                let said = tokio::time::timeout(FAREWELL_LIMIT, done.recv_async()).await;
                if matches!(said, Ok(Ok(_))) {
                    tokio::time::sleep(FAREWELL_REPEAT).await;
                } else {
                    tracing::debug!("no goodbye on the LAN: the mDNS daemon did not answer");
                }
            }
            Err(error) => tracing::debug!(%error, "no goodbye on the LAN"),
        }
        self.sink.report(|status| status.announced = None);
    }

    async fn stop(&mut self) {
        let Some(mut live) = self.live.take() else { return };
        self.withdraw(&mut live).await;
        match live.daemon.shutdown() {
            Ok(done) => {
                if tokio::time::timeout(FAREWELL_LIMIT, done.recv_async()).await.is_err() {
                    tracing::warn!("the mDNS daemon did not end within a second");
                }
            }
            Err(error) => tracing::debug!(%error, "the mDNS daemon was gone already"),
        }
        self.drop_daemon();
    }

    fn on_closed(&mut self) {
        let Some(live) = &mut self.live else { return };
        // Browsing again tells a slow reader from a dead daemon: a dead one refuses.
        live.browse = None;
        if live.monitor.is_disconnected() {
            self.fail(&MdnsError::Browse(mdns_sd::Error::DaemonShutdown));
        } else {
            self.pause();
        }
    }

    fn on_service(&mut self, event: ServiceEvent) {
        match event {
            ServiceEvent::ServiceResolved(service) => self.on_resolved(&service),
            ServiceEvent::ServiceRemoved(_, fullname) => self.sink.gone(&key(&fullname)),
            ServiceEvent::SearchStarted(_)
            | ServiceEvent::ServiceFound(..)
            | ServiceEvent::SearchStopped(_)
            | _ => {}
        }
    }

    fn on_resolved(&self, service: &ResolvedService) {
        let own = self.live.as_ref().and_then(|live| live.announced.as_ref());
        if own.is_some_and(|(_, fullname)| fullname.eq_ignore_ascii_case(&service.fullname)) {
            return;
        }
        let name = key(&service.fullname);
        let properties =
            service.txt_properties.iter().map(|property| (property.key(), property.val()));
        match Record::decode(properties) {
            Ok(record) => {
                let loopback = self.options.scope == Scope::Loopback;
                let addresses = addresses(service, loopback);
                if addresses.is_empty() {
                    self.sink.gone(&name);
                } else {
                    self.sink.saw(&name, record, &addresses);
                }
            }
            Err(error @ RecordError::OtherVersion(_)) => {
                tracing::info!(instance = name, %error, "a node is passed over");
                self.sink.gone(&name);
            }
            // The record may come in a later packet; if not, it is no node of ours.
            Err(error) => tracing::debug!(instance = name, %error, "no record of ours"),
        }
    }

    fn on_daemon(&mut self, event: DaemonEvent) {
        match event {
            DaemonEvent::Error(error) => self.sink.trouble(format!("mDNS: {error}")),
            DaemonEvent::IpAdd(ip) => {
                tracing::debug!(%ip, "this machine has a new address");
                self.sink.look_at_interfaces();
            }
            DaemonEvent::IpDel(ip) => {
                tracing::debug!(%ip, "this machine lost an address");
                self.sink.look_at_interfaces();
            }
            DaemonEvent::NameChange(change) => {
                tracing::warn!(?change, "another node announces itself under this node's name");
            }
            DaemonEvent::Announce(..) | DaemonEvent::Respond(_) | _ => {}
        }
    }

    fn verify(&self, instance: &str) {
        if let Some(live) = &self.live
            && let Err(error) = live.daemon.verify(instance.to_owned(), VERIFY_LIMIT)
        {
            tracing::debug!(instance, %error, "an announcement could not be verified");
        }
    }
}

async fn hear(live: Option<&Live>) -> Wake {
    let Some(live) = live else { return std::future::pending().await };
    let browse = async {
        match &live.browse {
            Some(events) => events.recv_async().await.map_or(Wake::Closed, Wake::Service),
            None => std::future::pending().await,
        }
    };
    let monitor = async {
        match live.monitor.recv_async().await {
            Ok(event) => Wake::Daemon(event),
            // A monitor that is lost while browsing goes on costs warnings, nothing else.
            Err(_closed) if live.browse.is_some() => std::future::pending().await,
            Err(_closed) => Wake::Closed,
        }
    };
    tokio::select! {
        wake = browse => wake,
        wake = monitor => wake,
    }
}

/// Chooses the interfaces, for the daemon's thread.
struct Picker {
    scope: Scope,
    clock: Arc<dyn Clock>,
    last: Mutex<Option<(u64, BTreeSet<String>)>>,
}

impl Picker {
    fn new(scope: Scope, clock: Arc<dyn Clock>) -> Self {
        Self { scope, clock, last: Mutex::new(None) }
    }

    fn names(&self) -> BTreeSet<String> {
        let now = self.clock.boot_millis();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, names)) = &*last
            && now.saturating_sub(*at) < PICK_MILLIS
        {
            return names.clone();
        }
        let all = interfaces::list().unwrap_or_default();
        let names = match self.scope {
            Scope::Lan => interfaces::lan_names(&all),
            Scope::Loopback => all
                .into_iter()
                .filter(|own| own.medium == interfaces::Medium::Loopback)
                .map(|own| own.name)
                .collect(),
        };
        *last = Some((now, names.clone()));
        names
    }
}

/// DNS names are equal without case, and the daemon spells them both ways.
fn key(fullname: &str) -> String {
    fullname.to_ascii_lowercase()
}

fn service(announcement: &Announcement) -> mdns_sd::Result<ServiceInfo> {
    let instance = announcement.instance();
    let host = format!("{instance}.local.");
    let properties = announcement.record.encode();
    let addresses: &[IpAddr] = &announcement.addresses;
    let port = announcement.port;
    let mut service =
        ServiceInfo::new(SERVICE, &instance, &host, addresses, port, &properties[..])?;
    if addresses.is_empty() {
        service = service.enable_addr_auto();
    }
    // The name holds the boot nonce, so nobody else has it and probing would only cost a second.
    service.set_requires_probe(false);
    Ok(service)
}

/// The addresses of an announcement that can be dialled from here.
fn addresses(service: &ResolvedService, loopback: bool) -> Vec<SocketAddr> {
    let mut found: Vec<SocketAddr> = service
        .addresses
        .iter()
        .filter_map(|ip| match ip {
            ScopedIp::V4(v4) => Some(SocketAddr::new(IpAddr::V4(*v4.addr()), service.port)),
            // Only a link-local address needs its interface; elsewhere the number would make two
            // addresses of one.
            ScopedIp::V6(v6) => {
                let scope = if v6.addr().is_unicast_link_local() { v6.scope_id().index } else { 0 };
                Some(SocketAddrV6::new(*v6.addr(), service.port, 0, scope).into())
            }
            _ => None,
        })
        // Somebody else's loopback would be this machine itself.
        .filter(|address: &SocketAddr| loopback || !address.ip().to_canonical().is_loopback())
        .collect();
    // They come in the order of a hash.
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests;
