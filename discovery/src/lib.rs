//! Who is out there: hints, never membership.
//!
//! Discovery finds addresses to dial: the user's seeds, what worked before, what the cluster told
//! and what the LAN announces by DNS-SD over multicast DNS. All of it is a hint with a provenance.
//! Whoever dials must let the handshake prove the node, bound how often it dials, and decide
//! membership elsewhere; the announcements can be read and forged by anybody on the LAN.
//!
//! It promises: no socket is opened and nothing is sent before [`Discovery::announce`] or
//! [`Discovery::search`]; no secret, host name or user name is announced; every table is bounded;
//! nothing that fails or panics in here takes the node down. It does not promise to find anybody:
//! many networks carry no multicast, and then there are seeds, and the addresses at which members
//! answered before. Those are remembered over starts by who dials them: the log's transport, in
//! `local/peers`.
//!
//! In reading order: [`directory`], [`record`], [`seeds`], [`interfaces`], then the sources
//! [`mdns`] and [`memory`].

pub mod directory;
pub mod interfaces;
pub mod mdns;
pub mod memory;
pub mod record;
pub mod seeds;
mod source;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nexus_rt::{CancellationToken, Clock, Jobs};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

pub use directory::{Directory, Found, Hint, Provenance};
pub use record::{ClusterHint, InviteId, Record, Role};
pub use seeds::{Seed, SeedError};
pub use source::{Activity, Announcement, Status};

use source::{Sink, Wish};

/// As many doubted announcements wait to be verified; more are as good as none.
const DOUBTS_MAX: usize = 16;
/// During a search, names of seeds are resolved again this often.
const SEEDS_AGAIN: Duration = Duration::from_secs(15);
/// A search gives so many addresses of one place; a place with ever new ones is a forgery.
const GIVEN_PER_PLACE_MAX: usize = 32;
/// A search gives so many places between two rounds.
const GIVEN_MAX: usize = 256;

/// Where announcements are made and seen.
#[derive(Clone, Debug)]
pub enum Lan {
    /// Nowhere (`--no-mdns`): seeds and told addresses only.
    Nowhere,
    /// By multicast DNS.
    Mdns(mdns::Options),
    /// Inside the process, for tests.
    Memory(memory::Lan),
}

/// What discovery starts with.
#[derive(Clone, Debug)]
pub struct Config {
    /// What to announce from the start; none is silence.
    pub announce: Option<Announcement>,
    /// Addresses that the user gave.
    pub seeds: Vec<Seed>,
    /// Where to announce and look.
    pub lan: Lan,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where the jobs of discovery run; their shutdown says goodbye on the LAN.
    pub jobs: Jobs,
}

/// The handle on discovery; clones are the same, and with the last one its jobs end.
#[derive(Clone, Debug)]
pub struct Discovery {
    wish: watch::Sender<Wish>,
    doubts: mpsc::Sender<String>,
    sink: Sink,
}

impl Discovery {
    /// Starts discovery; silent unless the configuration announces something.
    #[must_use]
    pub fn start(config: Config) -> Self {
        let Config { announce, seeds, lan, clock, jobs } = config;
        let wish = watch::Sender::new(Wish { announce, ..Wish::default() });
        let (doubts, doubted) = mpsc::channel(DOUBTS_MAX);
        let directory = watch::Sender::new(Directory::default());
        let status = watch::Sender::new(Status::default());
        let sink = Sink { directory, status, clock };
        let token = jobs.token();
        if !seeds.is_empty() {
            let job = follow_seeds(seeds, wish.subscribe(), sink.clone(), token.clone());
            jobs.spawn("discovery seeds", job);
        }
        match lan {
            Lan::Nowhere => {}
            Lan::Mdns(options) => {
                let job = mdns::run(options, wish.subscribe(), doubted, sink.clone(), token);
                jobs.spawn("discovery mdns", job);
            }
            Lan::Memory(lan) => {
                jobs.spawn(
                    "discovery memory",
                    memory::run(lan, wish.subscribe(), sink.clone(), token),
                );
            }
        }
        Self { wish, doubts, sink }
    }

    /// Announces this node on the LAN, or changes what is announced.
    pub fn announce(&self, announcement: Announcement) {
        self.wish.send_if_modified(|wish| {
            let changed = wish.announce.as_ref() != Some(&announcement);
            wish.announce = Some(announcement);
            changed
        });
    }

    /// Takes the announcement back, and waits at most `limit` until the goodbye is said.
    ///
    /// Returns whether it was said in time.
    pub async fn silence(&self, limit: Duration) -> bool {
        let mut status = self.sink.status.subscribe();
        self.wish.send_modify(|wish| wish.announce = None);
        let silent = status.wait_for(|status| status.announced.is_none());
        tokio::time::timeout(limit, silent).await.is_ok()
    }

    /// Begins anew on the LAN, for a machine that slept or changed networks.
    ///
    /// What was announced before and is not seen again within half a minute is dropped.
    pub fn rebuild(&self) {
        self.sink.look_at_interfaces();
        self.wish.send_modify(|wish| wish.rebuilds = wish.rebuilds.wrapping_add(1));
    }

    /// Begins to look for something; the search goes on until it is dropped.
    #[must_use]
    pub fn search(&self, hint: Hint) -> Search {
        self.sink.look_at_interfaces();
        self.sink.change(|directory, _| {
            directory.want(hint.clone());
            false
        });
        self.wish.send_modify(|wish| wish.searches = wish.searches.saturating_add(1));
        let changes = self.sink.directory.subscribe();
        Search { discovery: self.clone(), hint, changes, given: BTreeMap::new() }
    }

    /// Looks for something for at most `limit`, and returns all that fits as soon as anything does.
    ///
    /// A seed fits always, so whoever gave one and wants the LAN's answer too uses
    /// [`Discovery::search`].
    pub async fn find(&self, hint: Hint, limit: Duration) -> Vec<Found> {
        let mut search = self.search(hint);
        match search.next(limit).await {
            Some(_) => search.candidates(),
            None => Vec::new(),
        }
    }

    /// Returns what is known now.
    #[must_use]
    pub fn directory(&self) -> Directory {
        self.sink.directory.borrow().clone()
    }

    /// Returns a channel that holds what is known, and wakes at each change of it.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Directory> {
        self.sink.directory.subscribe()
    }

    /// Returns how discovery fares.
    #[must_use]
    pub fn status(&self) -> Status {
        self.sink.status.borrow().clone()
    }

    /// Returns a channel that holds how discovery fares.
    #[must_use]
    pub fn status_changes(&self) -> watch::Receiver<Status> {
        self.sink.status.subscribe()
    }

    /// Returns a node's addresses in the order to try them; a few at most, perhaps none.
    #[must_use]
    pub fn addresses(&self, cluster: ClusterHint, node: u64) -> Vec<SocketAddr> {
        let now = self.sink.now();
        self.sink.directory.borrow().addresses(cluster, node, now)
    }

    /// Takes the replicated address list of a node; an empty one ends the former.
    pub fn told(&self, cluster: ClusterHint, node: u64, addresses: &[SocketAddr]) {
        self.sink.change(|directory, _| directory.told(cluster, node, addresses));
    }

    /// Forgets a node that is no member any more.
    pub fn forget(&self, cluster: ClusterHint, node: u64) {
        self.sink.change(|directory, _| directory.forget(cluster, node));
    }

    /// Notes that a node proved itself at an address.
    pub fn worked(&self, cluster: ClusterHint, node: u64, address: SocketAddr) {
        self.sink.change(|directory, now| directory.worked(cluster, node, address, now));
    }

    /// Notes that a node did not answer at an address, and has its announcement checked.
    pub fn failed(&self, cluster: ClusterHint, node: u64, address: SocketAddr) {
        if self.sink.change(|directory, now| directory.failed(cluster, node, address, now)) {
            let announcers = self.sink.directory.borrow().announcers(cluster, node, &address);
            for instance in announcers {
                // Full or closed: then nobody verifies, and the record ends by its own time.
                if self.doubts.try_send(instance).is_err() {
                    break;
                }
            }
        }
    }
}

/// A running search: as long as it lives, the LAN is browsed and seeds are resolved.
#[derive(Debug)]
pub struct Search {
    discovery: Discovery,
    hint: Hint,
    changes: watch::Receiver<Directory>,
    given: BTreeMap<Place, Vec<SocketAddr>>,
}

/// What makes two findings the same place: the node, or a seed's address.
type Place = (Option<(ClusterHint, u64)>, Option<SocketAddr>);

impl Search {
    /// Waits at most `limit` for a place that was not given yet, or that has a new address.
    ///
    /// Returns none when the time is over; the search may go on with another call.
    pub async fn next(&mut self, limit: Duration) -> Option<Found> {
        let deadline = Instant::now() + limit;
        loop {
            self.changes.mark_unchanged();
            if let Some(found) = self.first_new() {
                return Some(found);
            }
            match tokio::time::timeout_at(deadline, self.changes.changed()).await {
                Ok(Ok(())) => {}
                // The time is over, or nobody is left who could find anything.
                Ok(Err(_)) | Err(_) => return None,
            }
        }
    }

    /// Gives every place anew, for another round of dials.
    pub fn again(&mut self) {
        self.given.clear();
    }

    /// Returns all that fits now, given before or not.
    #[must_use]
    pub fn candidates(&self) -> Vec<Found> {
        let now = self.discovery.sink.now();
        self.discovery.sink.directory.borrow().candidates(&self.hint, now)
    }

    fn first_new(&mut self) -> Option<Found> {
        let found =
            self.candidates().into_iter().find(|found| match self.given.get(&place(found)) {
                None => self.given.len() < GIVEN_MAX,
                Some(given) => {
                    given.len() < GIVEN_PER_PLACE_MAX
                        && found.addresses.iter().any(|new| !given.contains(new))
                }
            })?;
        let given = self.given.entry(place(&found)).or_default();
        for address in &found.addresses {
            if !given.contains(address) {
                given.push(*address);
            }
        }
        Some(found)
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.discovery.sink.change(|directory, _| {
            directory.unwant(&self.hint);
            false
        });
        self.discovery.wish.send_modify(|wish| wish.searches = wish.searches.saturating_sub(1));
    }
}

fn place(found: &Found) -> Place {
    match found.node {
        Some(node) => (Some(node), None),
        None => (None, found.addresses.first().copied()),
    }
}

/// Resolves the seeds while somebody searches.
async fn follow_seeds(
    seeds: Vec<Seed>,
    mut wish: watch::Receiver<Wish>,
    sink: Sink,
    token: CancellationToken,
) {
    let work = async {
        while wish.wait_for(|wish| wish.searches > 0).await.is_ok() {
            let answers = futures::future::join_all(seeds.iter().map(Seed::resolve)).await;
            let (mut addresses, mut troubles) = (Vec::new(), Vec::new());
            for answer in answers {
                match answer {
                    Ok(some) => addresses.extend(some),
                    Err(error) => troubles.push(chain(&error)),
                }
            }
            if sink.status.borrow().seed_troubles != troubles {
                for trouble in &troubles {
                    tracing::warn!("{trouble}");
                }
                sink.report(|status| status.seed_troubles = troubles);
            }
            sink.change(|directory, _| directory.seeds(&addresses));
            // The pause ends early when nobody searches any more, so that the next search begins
            // with a fresh look.
            let quiet = wish.wait_for(|wish| wish.searches == 0);
            if let Ok(Err(_closed)) = tokio::time::timeout(SEEDS_AGAIN, quiet).await {
                return;
            }
        }
    };
    // Nothing is lost when the process stops in between.
    token.run_until_cancelled(work).await;
}

/// Writes an error with its source, for a reader who sees one line.
fn chain(error: &SeedError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
