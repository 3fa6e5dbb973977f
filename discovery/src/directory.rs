//! What is known about where nodes are, and from whom: pure, bounded, and never proof of anything.
//!
//! Every address is kept apart by where it came from, so that a forged announcement can neither
//! remove nor crowd out what the cluster told, what worked before or what the user gave.
//! Time comes from outside, in milliseconds of the clock that goes on through sleep.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::interfaces::{self, Interface, Reach};
use crate::record::{ClusterHint, InviteId, Record, Role};

/// As many announcing instances are kept, and as many nodes of each other provenance.
pub const INSTANCES_MAX: usize = 64;
/// As many addresses of one node are kept and given; each will be dialled.
pub const ADDRESSES_MAX: usize = 8;
/// So many of a node's addresses stay for those that nobody on the LAN can forge.
const TRUSTED_SHARE: usize = 3;
/// Of one node, only the newest announcements count: an older one is an earlier start.
const INSTANCES_PER_NODE_MAX: usize = 2;
/// As many user-given addresses are kept.
const SEEDS_MAX: usize = 64;
/// As many dials are remembered: each address of each node once.
const DIALS_MAX: usize = INSTANCES_MAX * ADDRESSES_MAX;
/// An announcement that is not renewed ends with its DNS records, after 75 minutes.
const ANNOUNCED_MILLIS: u64 = 4_500_000;
/// After the network may have changed, an announcement must be seen again within this.
const DOUBTED_MILLIS: u64 = 30_000;
/// So long after a failed dial an address waits behind the others.
const FAILED_MILLIS: u64 = 60_000;

/// Where a sighting came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// The user gave the address.
    Seed,
    /// It has worked.
    Worked,
    /// The LAN announces it: fresh, and anybody may have said so.
    Mdns,
    /// The cluster's replicated list names it.
    Told,
}

/// What somebody looks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// Any node of a cluster.
    Cluster(ClusterHint),
    /// One node.
    Node(ClusterHint, u64),
    /// The node that made an invite.
    Invite(InviteId),
}

impl Hint {
    fn fits(&self, record: &Record) -> bool {
        match self {
            Self::Cluster(cluster) => record.cluster == *cluster,
            Self::Node(cluster, node) => (record.cluster, record.node) == (*cluster, *node),
            Self::Invite(invite) => record.invites.contains(invite),
        }
    }

    fn fits_node(&self, key: NodeKey) -> bool {
        match self {
            Self::Cluster(cluster) => key.0 == *cluster,
            Self::Node(cluster, node) => key == (*cluster, *node),
            Self::Invite(_) => false,
        }
    }
}

/// One place to dial for what was looked for, with its addresses in the order to try them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its cluster and node id, as announced or told; none for a bare seed.
    pub node: Option<(ClusterHint, u64)>,
    /// Its announced role.
    pub role: Option<Role>,
    /// Where the best of it came from.
    pub provenance: Provenance,
    /// What to dial: several at a time, a little apart.
    pub addresses: Vec<SocketAddr>,
}

type NodeKey = (ClusterHint, u64);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Announced {
    record: Record,
    addresses: Vec<SocketAddr>,
    seen: u64,
    until: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dial {
    worked: Option<u64>,
    failed: Option<u64>,
}

/// Everything that is known, as a value.
///
/// The methods that change it say whether anything changed that a reader could notice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    announced: BTreeMap<String, Announced>,
    told: BTreeMap<NodeKey, Vec<SocketAddr>>,
    seeds: Vec<SocketAddr>,
    dials: BTreeMap<(NodeKey, SocketAddr), Dial>,
    wanted: BTreeMap<Hint, usize>,
    interfaces: Vec<Interface>,
}

impl Directory {
    /// Takes an announcement of the named instance, in place of its former one.
    ///
    /// When there are too many, the oldest one that nobody looks for gives way; when somebody
    /// looks for all of them, a stranger's announcement is not kept.
    pub fn saw(
        &mut self,
        instance: &str,
        record: Record,
        addresses: &[SocketAddr],
        now: u64,
    ) -> bool {
        let addresses = usable(addresses);
        let until = now.saturating_add(ANNOUNCED_MILLIS);
        if let Some(known) = self.announced.get_mut(instance) {
            let changed = known.record != record || known.addresses != addresses;
            *known = Announced { record, addresses, seen: now, until };
            return changed;
        }
        if self.announced.len() >= INSTANCES_MAX && !self.make_room(&record) {
            return false;
        }
        let announced = Announced { record, addresses, seen: now, until };
        self.announced.insert(instance.to_owned(), announced);
        true
    }

    fn make_room(&mut self, newcomer: &Record) -> bool {
        let oldest = |among_wanted: bool| {
            self.announced
                .iter()
                .filter(|(_, known)| among_wanted || !self.is_wanted(&known.record))
                .min_by_key(|(_, known)| known.seen)
                .map(|(instance, _)| instance.clone())
        };
        let victim =
            oldest(false).or_else(|| if self.is_wanted(newcomer) { oldest(true) } else { None });
        victim.is_some_and(|instance| self.announced.remove(&instance).is_some())
    }

    fn is_wanted(&self, record: &Record) -> bool {
        self.wanted.keys().any(|hint| hint.fits(record))
    }

    /// Forgets the announcement of an instance that said goodbye or was not renewed.
    pub fn gone(&mut self, instance: &str) -> bool {
        self.announced.remove(instance).is_some()
    }

    /// Drops announcements whose time is over.
    pub fn expire(&mut self, now: u64) -> bool {
        let before = self.announced.len();
        self.announced.retain(|_, known| known.until > now);
        before != self.announced.len()
    }

    /// Doubts every announcement: what is not seen again within half a minute ends.
    ///
    /// This is for a machine that slept or changed networks.
    pub fn doubt(&mut self, now: u64) {
        let until = now.saturating_add(DOUBTED_MILLIS);
        for known in self.announced.values_mut() {
            known.until = known.until.min(until);
        }
    }

    /// Takes the replicated address list of a node, in place of the former one.
    pub fn told(&mut self, cluster: ClusterHint, node: u64, addresses: &[SocketAddr]) -> bool {
        put(&mut self.told, (cluster, node), addresses)
    }

    /// Forgets what was told and tried of a node that is no member any more.
    pub fn forget(&mut self, cluster: ClusterHint, node: u64) -> bool {
        let key = (cluster, node);
        let told = self.told.remove(&key).is_some();
        let dials = self.dials.len();
        self.dials.retain(|(of, _), _| *of != key);
        told || dials != self.dials.len()
    }

    /// Takes the addresses behind the user's seeds, in place of the former ones.
    pub fn seeds(&mut self, addresses: &[SocketAddr]) -> bool {
        let mut seeds: Vec<SocketAddr> = Vec::new();
        for address in addresses.iter().map(canonical) {
            if is_usable(&address) && !seeds.contains(&address) && seeds.len() < SEEDS_MAX {
                seeds.push(address);
            }
        }
        let changed = seeds != self.seeds;
        self.seeds = seeds;
        changed
    }

    /// Notes that a node proved itself at an address, which comes first from now on.
    pub fn worked(
        &mut self,
        cluster: ClusterHint,
        node: u64,
        address: SocketAddr,
        now: u64,
    ) -> bool {
        let dial = self.dial((cluster, node), address);
        let changed = dial.worked.is_none() || dial.failed.is_some();
        *dial = Dial { worked: Some(now), failed: None };
        changed
    }

    /// Notes that a dial failed; says whether that is news, after a minute without a failure.
    pub fn failed(
        &mut self,
        cluster: ClusterHint,
        node: u64,
        address: SocketAddr,
        now: u64,
    ) -> bool {
        let dial = self.dial((cluster, node), address);
        let news = dial.failed.is_none_or(|at| now.saturating_sub(at) >= FAILED_MILLIS);
        dial.failed = Some(now);
        news
    }

    fn dial(&mut self, node: NodeKey, address: SocketAddr) -> &mut Dial {
        let key = (node, canonical(&address));
        if self.dials.len() >= DIALS_MAX && !self.dials.contains_key(&key) {
            let oldest = self.dials.iter().min_by_key(|(_, dial)| dial.worked.max(dial.failed));
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.dials.remove(&oldest);
            }
        }
        self.dials.entry(key).or_default()
    }

    /// Protects what fits the hint from giving way to strangers, until [`Directory::unwant`].
    pub fn want(&mut self, hint: Hint) {
        *self.wanted.entry(hint).or_default() += 1;
    }

    /// Ends one [`Directory::want`].
    pub fn unwant(&mut self, hint: &Hint) {
        if let Some(count) = self.wanted.get_mut(hint) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.wanted.remove(hint);
            }
        }
    }

    /// Takes this machine's interfaces, which decide what is near.
    pub fn set_interfaces(&mut self, interfaces: Vec<Interface>) -> bool {
        let changed = interfaces != self.interfaces;
        self.interfaces = interfaces;
        changed
    }

    /// Names the instances that announce a node at an address.
    #[must_use]
    pub fn announcers(&self, cluster: ClusterHint, node: u64, address: &SocketAddr) -> Vec<String> {
        let hint = Hint::Node(cluster, node);
        self.announced
            .iter()
            .filter(|(_, known)| hint.fits(&known.record) && known.addresses.contains(address))
            .map(|(instance, _)| instance.clone())
            .collect()
    }

    /// Returns a node's addresses in the order to try them, at most [`ADDRESSES_MAX`].
    ///
    /// The one that worked last is first, then what is near, then the rest; what failed within the
    /// last minute is at the end.
    #[must_use]
    pub fn addresses(&self, cluster: ClusterHint, node: u64, now: u64) -> Vec<SocketAddr> {
        let key = (cluster, node);
        let mut sourced: BTreeMap<SocketAddr, (Provenance, usize)> = BTreeMap::new();
        let mut add = |provenance: Provenance, addresses: &mut dyn Iterator<Item = SocketAddr>| {
            for (position, address) in addresses.enumerate() {
                sourced.entry(address).or_insert((provenance, position));
            }
        };
        let worked =
            self.dials.iter().filter(|((of, _), dial)| *of == key && dial.worked.is_some());
        add(Provenance::Worked, &mut worked.map(|((_, address), _)| *address));
        add(Provenance::Told, &mut self.told.get(&key).into_iter().flatten().copied());
        for known in self.newest(key, now) {
            add(Provenance::Mdns, &mut known.addresses.iter().copied());
        }
        let mut ranked: Vec<_> = sourced
            .into_iter()
            .map(|(address, (provenance, position))| {
                (self.rank(key, &address, now), position, provenance, address)
            })
            .collect();
        ranked.sort_unstable();
        let trusted = ranked.iter().filter(|entry| entry.2 != Provenance::Mdns).count();
        let mut forgeable_left = ADDRESSES_MAX - trusted.min(TRUSTED_SHARE);
        ranked.retain(|entry| {
            let forgeable = entry.2 == Provenance::Mdns;
            let keep = !forgeable || forgeable_left > 0;
            forgeable_left = forgeable_left.saturating_sub(usize::from(forgeable));
            keep
        });
        ranked.into_iter().map(|entry| entry.3).take(ADDRESSES_MAX).collect()
    }

    /// Orders by: worked (the latest first), not tried, failed; and within those by nearness.
    fn rank(&self, node: NodeKey, address: &SocketAddr, now: u64) -> (u8, Reverse<u64>, Reach) {
        let reach = interfaces::reach(&self.interfaces, address);
        let dial = self.dials.get(&(node, *address)).copied().unwrap_or_default();
        let failed = dial.failed.is_some_and(|at| now.saturating_sub(at) < FAILED_MILLIS);
        match dial.worked {
            _ if failed => (2, Reverse(0), reach),
            Some(at) => (0, Reverse(at), reach),
            None => (1, Reverse(0), reach),
        }
    }

    fn newest(&self, key: NodeKey, now: u64) -> Vec<&Announced> {
        let hint = Hint::Node(key.0, key.1);
        let mut of_node: Vec<&Announced> = self
            .announced
            .values()
            .filter(|known| known.until > now && hint.fits(&known.record))
            .collect();
        of_node.sort_by_key(|known| Reverse(known.seen));
        of_node.truncate(INSTANCES_PER_NODE_MAX);
        of_node
    }

    /// Returns what fits the hint: the user's seeds first, then nodes that worked, then those that
    /// the LAN announces, then those that are only told.
    ///
    /// A seed fits every hint, since the user said so; only the handshake shows who is there.
    #[must_use]
    pub fn candidates(&self, hint: &Hint, now: u64) -> Vec<Found> {
        let mut nodes: BTreeMap<NodeKey, (Provenance, Option<Role>)> = BTreeMap::new();
        for key in self.told.keys().filter(|key| hint.fits_node(**key)) {
            nodes.insert(*key, (Provenance::Told, None));
        }
        let fresh = self.announced.values().filter(|known| known.until > now);
        for known in fresh.filter(|known| hint.fits(&known.record)) {
            let key = (known.record.cluster, known.record.node);
            nodes.insert(key, (Provenance::Mdns, Some(known.record.role)));
        }
        let mut ranked: Vec<(bool, Found)> = nodes
            .into_iter()
            .map(|(key, (provenance, role))| {
                let addresses = self.addresses(key.0, key.1, now);
                let untried = !self.dials.iter().any(|((of, _), dial)| {
                    *of == key && dial.worked.is_some() && dial.failed.is_none()
                });
                (untried, Found { node: Some(key), role, provenance, addresses })
            })
            .filter(|(_, found)| !found.addresses.is_empty())
            .collect();
        ranked.sort_by_key(|(untried, found)| {
            (*untried, found.provenance != Provenance::Mdns, found.node)
        });
        let seeds = self.seeds.iter().map(|address| Found {
            node: None,
            role: None,
            provenance: Provenance::Seed,
            addresses: vec![*address],
        });
        seeds.chain(ranked.into_iter().map(|(_, found)| found)).collect()
    }
}

fn put(
    of: &mut BTreeMap<NodeKey, Vec<SocketAddr>>,
    key: NodeKey,
    addresses: &[SocketAddr],
) -> bool {
    let addresses = usable(addresses);
    if addresses.is_empty() {
        return of.remove(&key).is_some();
    }
    if of.len() >= INSTANCES_MAX && !of.contains_key(&key) {
        return false;
    }
    of.insert(key, addresses.clone()) != Some(addresses)
}

/// Keeps the first few addresses that one can dial, each once.
fn usable(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut kept: Vec<SocketAddr> = Vec::new();
    for address in addresses.iter().map(canonical) {
        if kept.len() < ADDRESSES_MAX && is_usable(&address) && !kept.contains(&address) {
            kept.push(address);
        }
    }
    kept
}

fn is_usable(address: &SocketAddr) -> bool {
    let ip = address.ip();
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast()
}

/// Writes an IPv4 address that is dressed as IPv6 as what it is, so that one place is one address.
fn canonical(address: &SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ std::net::IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        std::net::IpAddr::V6(_) => *address,
    }
}

#[cfg(test)]
mod tests;
