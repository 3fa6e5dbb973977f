//! Who may connect, and where everybody is: the transport's directory.
//!
//! Kept in memory beside the state and renewed when members change, because the transport asks on
//! every call. Accepted is (traps.md 9): a key that the membership records for that node id; or,
//! for append, vote, snapshot and circuits only, a certificate of this cluster whose node id is
//! greater than our applied index, because it may have been admitted after what we know. A circuit
//! gives no right: what it carries has a handshake of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nexus_domain::{NodeId, SUPPORTED};
use nexus_rt::Clock;
use rustls::pki_types::CertificateDer;

use crate::rpc::message::{KnownMember, Whereabouts};
use crate::snapshot::manifest;
use crate::store::local::{Local, Peers, Seen};
use crate::store::lock;
use crate::store::log::LogStore;
use crate::store::state::StateStore;
use crate::transport::{Directory, Hello, Lane, PROTOCOL, Refusal, code};

/// Refusal: this key is not the member's.
const NOT_A_MEMBER: u32 = code::OWNER;
/// Refusal: the folder is from the past, or in use twice.
const OLD_FOLDER: u32 = code::OWNER + 1;
/// Hints kept per node.
const HINTS_MAX: usize = 8;
/// The file of what peers showed.
const PEERS: &str = "peers";

/// What never changes while the node runs.
#[derive(Debug)]
pub(crate) struct Myself {
    pub(crate) node: NodeId,
    pub(crate) cluster: String,
    pub(crate) boot: u64,
    pub(crate) nonce: u64,
    pub(crate) software: String,
    pub(crate) authority: CertificateDer<'static>,
}

/// The transport's directory.
#[derive(Debug)]
pub(crate) struct Book {
    myself: Myself,
    log: LogStore,
    clock: Arc<dyn Clock>,
    local: Local,
    /// The applied index that `pages` was made from.
    applied: AtomicU64,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    /// What the membership records.
    members: BTreeMap<NodeId, Entry>,
    /// Addresses that discovery, members or the user named for a node.
    hints: BTreeMap<NodeId, Vec<SocketAddr>>,
    /// Addresses at which some member may be: every node may be tried there, and no other member
    /// is told that it is.
    seeds: Vec<SocketAddr>,
    peers: Peers,
    /// Whether `peers` differs from the disk.
    dirty: bool,
    /// Clocks of peers minus ours in milliseconds, as their hellos showed.
    clocks: BTreeMap<NodeId, i64>,
}

#[derive(Clone, Debug)]
struct Entry {
    public_key: Vec<u8>,
    addresses: Vec<SocketAddr>,
    boot: u64,
    nonce: u64,
}

impl Book {
    /// Makes the directory from what is on disk.
    pub(crate) fn new(
        myself: Myself,
        log: LogStore,
        clock: Arc<dyn Clock>,
        local: Local,
        known: &[KnownMember],
    ) -> Self {
        let mut pages = Pages { peers: local.read(PEERS), ..Pages::default() };
        for member in known {
            pages.members.insert(
                member.node,
                Entry {
                    public_key: member.public_key.clone(),
                    addresses: parse(&member.addresses),
                    boot: 0,
                    nonce: 0,
                },
            );
        }
        Self { myself, log, clock, local, applied: AtomicU64::new(0), pages: Mutex::new(pages) }
    }

    /// Returns what never changes while the node runs.
    pub(crate) fn myself(&self) -> &Myself {
        &self.myself
    }

    /// Renews the pages from the state and returns who is no member any more; what a join told
    /// stays until the state has this node's own admission, for which other members may be needed.
    ///
    /// # Errors
    /// A fault when the state cannot be read.
    pub(crate) fn renew(&self, state: &StateStore) -> Result<Vec<NodeId>, nexus_domain::Fault> {
        let (applied, members) =
            state.view(|view| Ok((view.applied()?, nexus_domain::cluster::members(view)?)))?;
        let entries = members.into_iter().map(|member| {
            let entry = Entry {
                public_key: member.public_key,
                addresses: parse(&member.addresses),
                boot: member.boot,
                nonce: member.nonce,
            };
            (member.id, entry)
        });
        Ok(self.turn(applied, entries.collect()))
    }

    /// Takes the members of a state, and returns who is none any more.
    fn turn(&self, applied: u64, members: BTreeMap<NodeId, Entry>) -> Vec<NodeId> {
        self.applied.fetch_max(applied, Ordering::Relaxed);
        if members.is_empty() {
            return Vec::new();
        }
        let mut pages = lock(&self.pages);
        let mut before = std::mem::replace(&mut pages.members, members);
        before.retain(|node, _| !pages.members.contains_key(node));
        // A node's id is the index of the entry that admits it.
        if applied < self.myself.node {
            pages.members.append(&mut before);
        }
        before.into_keys().collect()
    }

    /// Raises the applied index that admissions are judged by.
    pub(crate) fn applied(&self, index: u64) {
        self.applied.fetch_max(index, Ordering::Relaxed);
    }

    /// Notes addresses of a node (`None`: of some member) that discovery or the user named.
    pub(crate) fn hint(&self, node: Option<NodeId>, addresses: &[SocketAddr]) {
        let mut pages = lock(&self.pages);
        let hints = match node {
            Some(node) => pages.hints.entry(node).or_default(),
            None => &mut pages.seeds,
        };
        for address in addresses {
            if !hints.contains(address) {
                hints.insert(0, *address);
            }
        }
        hints.truncate(HINTS_MAX);
    }

    /// Returns where the other members are, as far as this node knows.
    pub(crate) fn whereabouts(&self) -> Vec<Whereabouts> {
        let others = self.others();
        let pages = lock(&self.pages);
        let at = |node| pages.addresses(node).iter().map(ToString::to_string).collect();
        others.into_iter().map(|node| Whereabouts { node, addresses: at(node) }).collect()
    }

    /// Returns the other members that this node knows of.
    pub(crate) fn others(&self) -> Vec<NodeId> {
        let pages = lock(&self.pages);
        pages.members.keys().copied().filter(|node| *node != self.myself.node).collect()
    }

    /// Notes what a peer acknowledged to this node as leader.
    pub(crate) fn acknowledged(&self, node: NodeId, term: u64, index: u64) {
        let mut pages = lock(&self.pages);
        let seen = pages.peers.seen.entry(node).or_default();
        if seen.acknowledged < Some((term, index)) {
            seen.acknowledged = Some((term, index));
            pages.dirty = true;
        }
    }

    /// Writes what peers showed, if it changed. Blocks on the disk.
    pub(crate) fn save(&self) {
        let peers = {
            let mut pages = lock(&self.pages);
            if !std::mem::take(&mut pages.dirty) {
                return;
            }
            pages.peers.clone()
        };
        if let Err(error) = self.local.write(PEERS, &peers) {
            tracing::warn!("local/{PEERS}: cannot be written: {error}");
        }
    }

    /// Returns how far the clocks of peers are ahead of ours, in milliseconds.
    pub(crate) fn clocks(&self) -> BTreeMap<NodeId, i64> {
        lock(&self.pages).clocks.clone()
    }
}

impl Pages {
    /// Returns the addresses of a node, best first: where it was reached, what it says itself, and
    /// what others say.
    fn addresses(&self, node: NodeId) -> Vec<SocketAddr> {
        let worked = self.peers.seen.get(&node).and_then(|seen| seen.address.as_ref());
        let mut addresses: Vec<SocketAddr> =
            worked.and_then(|it| it.parse().ok()).into_iter().collect();
        let recorded = self.members.get(&node).map(|member| member.addresses.as_slice());
        let hints = self.hints.get(&node).map(Vec::as_slice);
        for address in recorded.into_iter().chain(hints).flatten() {
            if !addresses.contains(address) {
                addresses.push(*address);
            }
        }
        addresses
    }
}

fn parse(addresses: &[String]) -> Vec<SocketAddr> {
    addresses.iter().filter_map(|address| address.parse().ok()).collect()
}

/// Judges a peer's boot number, nonce and last log id by what was seen of it.
fn judge(seen: &Seen, boot: u64, nonce: u64, last: Option<(u64, u64)>) -> Result<(), String> {
    if boot < seen.boot {
        return Err(format!("its boot number is {boot}, it has shown {} before", seen.boot));
    }
    if boot == seen.boot && nonce != seen.nonce {
        return Err(format!("boot {boot} was shown with another nonce"));
    }
    if last < seen.acknowledged {
        return Err("its log ends before what it has acknowledged".to_owned());
    }
    Ok(())
}

impl Directory for Book {
    fn hello(&self) -> Hello {
        Hello {
            protocol: PROTOCOL,
            cluster: self.myself.cluster.clone(),
            node: self.myself.node,
            boot: self.myself.boot,
            nonce: self.myself.nonce,
            last_log: self.log.last().map(|id| (id.leader_id.term, id.index)),
            snapshot_format: manifest::FORMAT,
            state_version: SUPPORTED,
            software: self.myself.software.clone(),
            wall_millis: self.clock.wall_millis(),
        }
    }

    fn admit(&self, node: NodeId, spki: &[u8], lane: Lane) -> Result<(), Refusal> {
        let pages = lock(&self.pages);
        if let Some(member) = pages.members.get(&node) {
            if member.public_key == spki {
                return Ok(());
            }
            let text = format!("node {node}: its key is not the one that the cluster recorded");
            return Err(Refusal::new(NOT_A_MEMBER, text));
        }
        let newer = node > self.applied.load(Ordering::Relaxed);
        match lane {
            Lane::Log | Lane::Heartbeat | Lane::Snapshot | Lane::Relay if newer => Ok(()),
            Lane::Log | Lane::Heartbeat | Lane::Snapshot | Lane::Rpc | Lane::Relay => {
                let text = format!(
                    "node {node} is no member of this cluster (removed, or not known here yet); a \
                     removed machine joins again with a new invite and an empty folder"
                );
                Err(Refusal::new(NOT_A_MEMBER, text))
            }
        }
    }

    fn check_hello(&self, peer: &Hello) -> Result<(), Refusal> {
        let mut pages = lock(&self.pages);
        let recorded = pages.members.get(&peer.node).map(|member| Seen {
            boot: member.boot,
            nonce: member.nonce,
            ..Seen::default()
        });
        let seen = pages.peers.seen.entry(peer.node).or_default();
        let checks = recorded.iter().chain(std::iter::once(&*seen));
        for known in checks {
            if let Err(what) = judge(known, peer.boot, peer.nonce, peer.last_log) {
                let text = format!(
                    "node {}: this folder is older than what this machine told the cluster, or is \
                     in use twice ({what}): remove the node and join again",
                    peer.node
                );
                return Err(Refusal::new(OLD_FOLDER, text));
            }
        }
        if (seen.boot, seen.nonce) != (peer.boot, peer.nonce) {
            (seen.boot, seen.nonce) = (peer.boot, peer.nonce);
            pages.dirty = true;
        }
        let ahead =
            i64::try_from(i128::from(peer.wall_millis) - i128::from(self.clock.wall_millis()));
        pages.clocks.insert(peer.node, ahead.unwrap_or(i64::MAX));
        Ok(())
    }

    fn members(&self) -> Vec<NodeId> {
        self.others()
    }

    fn addresses(&self, node: NodeId) -> Vec<SocketAddr> {
        let pages = lock(&self.pages);
        let mut addresses = pages.addresses(node);
        for seed in &pages.seeds {
            if !addresses.contains(seed) {
                addresses.push(*seed);
            }
        }
        addresses
    }

    fn reached(&self, node: NodeId, at: SocketAddr) {
        let mut pages = lock(&self.pages);
        let seen = pages.peers.seen.entry(node).or_default();
        let address = Some(at.to_string());
        if seen.address != address {
            seen.address = address;
            pages.dirty = true;
        }
    }

    fn heard(&self, node: NodeId, from: SocketAddr) {
        // A node dials from the socket that it listens on.
        self.hint(Some(node), &[from]);
    }

    fn roots(&self) -> Vec<CertificateDer<'static>> {
        vec![self.myself.authority.clone()]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nexus_rt::SystemClock;

    use super::*;
    use crate::store::rocks;

    fn open(data: &Path) -> Book {
        let myself = Myself {
            node: 9,
            cluster: "c".to_owned(),
            boot: 1,
            nonce: 1,
            software: String::new(),
            authority: CertificateDer::from(vec![0]),
        };
        let log = LogStore::open(data, &rocks::cache()).unwrap();
        let known = [1, 2].map(|node| KnownMember {
            node,
            public_key: vec![1],
            addresses: vec![format!("10.0.0.{node}:5689")],
            name: format!("m-{node}"),
        });
        Book::new(myself, log, Arc::new(SystemClock), Local::open(data).unwrap(), &known)
    }

    #[tokio::test]
    async fn where_a_member_answered_is_remembered_over_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let (recorded, there) = ("10.0.0.2:5689", "10.0.0.7:5689");
        let book = open(folder.path());
        let at = |book: &Book| -> Vec<String> {
            book.addresses(2).iter().map(ToString::to_string).collect()
        };
        assert_eq!(at(&book), [recorded]);
        // Discovery named it, and it answered.
        book.hint(Some(2), &[there.parse().unwrap()]);
        assert_eq!(at(&book), [recorded, there]);
        book.reached(2, there.parse().unwrap());
        book.save();
        drop(book);
        assert_eq!(at(&open(folder.path())), [there, recorded]);
    }

    #[tokio::test]
    async fn a_seed_may_be_any_member_and_is_told_of_none() {
        let folder = tempfile::tempdir().unwrap();
        let book = open(folder.path());
        let seed: SocketAddr = "10.0.0.9:5689".parse().unwrap();
        book.hint(None, &[seed]);
        for node in [1, 2, 3] {
            assert_eq!(book.addresses(node).last(), Some(&seed));
        }
        let told = book.whereabouts();
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|it| !it.addresses.contains(&seed.to_string())), "{told:?}");
    }

    #[tokio::test]
    async fn what_a_join_told_stays_until_the_own_admission_is_applied() {
        let folder = tempfile::tempdir().unwrap();
        let book = open(folder.path());
        let of_state = |nodes: &[NodeId]| -> BTreeMap<NodeId, Entry> {
            let entry = Entry { public_key: vec![2], addresses: vec![], boot: 0, nonce: 0 };
            nodes.iter().map(|node| (*node, entry.clone())).collect()
        };
        // The log begins with a cluster of one.
        assert_eq!(book.turn(8, of_state(&[1])), Vec::<NodeId>::new());
        assert_eq!(book.others(), [1, 2]);
        assert!(book.admit(2, &[1], Lane::Rpc).is_ok());
        assert!(book.admit(1, &[2], Lane::Rpc).is_ok(), "what the state says is newer");
        assert_eq!(book.turn(9, of_state(&[1, 9])), [2]);
        assert_eq!(book.others(), [1]);
        assert!(book.admit(2, &[1], Lane::Rpc).is_err());
        // One that this node does not know yet may bring a circuit, and nothing of its own.
        assert!(book.admit(10, &[7], Lane::Relay).is_ok());
        assert!(book.admit(10, &[7], Lane::Rpc).is_err());
    }
}
