//! A LAN inside the process, for tests: what is announced on it, everybody else on it sees.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use nexus_rt::CancellationToken;
use tokio::sync::watch;

use crate::record::Record;
use crate::source::{Activity, Announcement, Sink, Wish};

type Announced = BTreeMap<String, (Record, Vec<SocketAddr>)>;

/// A LAN inside the process; clones are the same LAN.
#[derive(Clone, Debug, Default)]
pub struct Lan {
    announced: watch::Sender<Announced>,
}

impl Lan {
    /// Makes a LAN on which nobody is.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn put(&self, announcement: &Announcement) {
        let addresses: &[IpAddr] = match announcement.addresses.as_slice() {
            [] => &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
            some => some,
        };
        let addresses =
            addresses.iter().map(|ip| SocketAddr::new(*ip, announcement.port)).collect();
        let entry = (announcement.record.clone(), addresses);
        self.announced.send_modify(|lan| {
            lan.insert(announcement.instance(), entry);
        });
    }

    fn take(&self, instance: &str) {
        self.announced.send_modify(|lan| {
            lan.remove(instance);
        });
    }
}

/// Runs the source until the token is cancelled or nobody holds the wish any more.
pub(crate) async fn run(
    lan: Lan,
    mut wish: watch::Receiver<Wish>,
    sink: Sink,
    token: CancellationToken,
) {
    let mut changes = lan.announced.subscribe();
    let mut own: Option<String> = None;
    let mut seen: Vec<String> = Vec::new();
    loop {
        let wanted = wish.borrow_and_update().clone();
        let name = wanted.announce.as_ref().map(Announcement::instance);
        if let Some(old) = own.take().filter(|old| name.as_ref() != Some(old)) {
            lan.take(&old);
        }
        if let Some(announcement) = &wanted.announce {
            let unchanged = lan.announced.borrow().get(&announcement.instance()).is_some_and(
                |(record, addresses)| {
                    *record == announcement.record
                        && addresses.iter().all(|address| address.port() == announcement.port)
                },
            );
            if !unchanged {
                lan.put(announcement);
            }
        }
        own.clone_from(&name);
        sink.report(|status| {
            status.announced = name;
            status.activity = if wanted.is_silent() { Activity::Silent } else { Activity::Live };
        });
        let on_lan = changes.borrow_and_update().clone();
        if !wanted.is_silent() {
            for old in seen.iter().filter(|old| !on_lan.contains_key(*old)) {
                sink.gone(old);
            }
            seen =
                on_lan.keys().filter(|instance| own.as_ref() != Some(instance)).cloned().collect();
            for (instance, (record, addresses)) in &on_lan {
                if own.as_ref() != Some(instance) {
                    sink.saw(instance, record.clone(), addresses);
                }
            }
        }
        tokio::select! {
            biased;
            () = token.cancelled() => break,
            changed = wish.changed() => if changed.is_err() { break },
            changed = changes.changed() => if changed.is_err() { break },
        }
    }
    if let Some(own) = own {
        lan.take(&own);
    }
}
