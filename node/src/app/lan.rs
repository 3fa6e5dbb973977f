//! How this node stands to the LAN: where its cluster port is bound, what it tells others of that,
//! and what it hears.
//!
//! A fresh node is bound to loopback and silent. `nexus invite` and `--join` are the user's word to
//! open the LAN; an address given by `--cluster` is that word too. One job makes the world agree
//! with the present state, whatever changed: addresses of interfaces, members, invites, the word.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use nexus_discovery::{
    Announcement, ClusterHint, Discovery, Hint as Wanted, Provenance, Record, Role, Search,
    interfaces,
};
use nexus_domain::NodeId;
use nexus_domain::cluster::{self, InviteState, Member};
use nexus_raft::{Cluster, MemberRole, OpenError, ProposeError};
use nexus_rt::{Clock, Jobs};
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::node::own_name;
use crate::cli::chain;
use crate::config::{Advertised, Config, GivenSeed, Place, Settings, SettingsError};

/// How often this machine's addresses are looked at: a lease or a cable changes them.
const LOOK: Duration = Duration::from_secs(60);
/// How soon telling the cluster is tried again when no leader was there.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a start waits for a new name; without a leader it comes later.
const RENAME_LIMIT: Duration = Duration::from_secs(3);

/// Why the LAN cannot be opened or closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LanError {
    #[error("cluster port {address} (UDP) cannot be opened")]
    Rebind { address: SocketAddr, source: OpenError },
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(
        "cluster address {0} was given by --cluster or in the settings: take it out there and \
         start again"
    )]
    Given(SocketAddr),
    #[error("{others} other machines belong to the cluster: remove them first (nexus node remove)")]
    Shared { others: usize },
}

/// Starts discovery: silent until told otherwise.
pub(super) fn start_discovery(config: &Config, clock: &Arc<dyn Clock>, jobs: &Jobs) -> Discovery {
    let lan = if config.mdns {
        nexus_discovery::Lan::Mdns(nexus_discovery::mdns::Options::default())
    } else {
        nexus_discovery::Lan::Nowhere
    };
    Discovery::start(nexus_discovery::Config {
        announce: None,
        seeds: config.seeds.iter().map(|given| given.seed.clone()).collect(),
        lan,
        clock: Arc::clone(clock),
        jobs: jobs.clone(),
    })
}

/// Looks once whether each seed leads somewhere, and says so by the field that it stands in: a slip
/// of the pen would else show on the day on which the seed is needed.
pub(super) async fn check_seeds(seeds: Vec<GivenSeed>, token: CancellationToken) {
    let work = async {
        for GivenSeed { seed, field } in seeds {
            if let Err(error) = seed.resolve().await {
                tracing::warn!("{field}: {}", chain(&error));
            }
        }
    };
    token.run_until_cancelled(work).await;
}

/// Returns the addresses to tell others for a place bound at `bound`.
pub(super) fn advertised(
    place: Place,
    bound: SocketAddr,
    settings: &[Advertised],
) -> Vec<SocketAddr> {
    let port = bound.port();
    if place == Place::Silent {
        return vec![bound];
    }
    if !settings.is_empty() {
        let whole = |given: &Advertised| SocketAddr::new(given.ip, given.port.unwrap_or(port));
        return settings.iter().map(whole).collect();
    }
    match place {
        Place::Given(address) if !address.ip().is_unspecified() => {
            vec![SocketAddr::new(address.ip(), port)]
        }
        Place::Given(_) | Place::Lan | Place::Silent => match interfaces::advertised() {
            Ok(found) => found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect(),
            Err(error) => {
                tracing::warn!(%error, "this machine's addresses cannot be listed");
                Vec::new()
            }
        },
    }
}

/// Returns whether an address leads to this node itself, which is bound at `bound`, tells others
/// `told`, and whose machine is `here`: one list of seeds often serves all machines.
///
/// It goes by where the node is now. What the cluster has noted of it may be another's by now.
fn is_own(address: SocketAddr, bound: SocketAddr, told: &[SocketAddr], here: &[IpAddr]) -> bool {
    let at_port = address.port() == bound.port();
    let everywhere = bound.ip().is_unspecified() && here.contains(&address.ip());
    told.contains(&address) || (at_port && (everywhere || address.ip() == bound.ip()))
}

/// How this node stands to the LAN.
#[derive(Debug)]
pub(crate) struct Lan {
    cluster: Cluster,
    discovery: Discovery,
    settings: PathBuf,
    advertise: Vec<Advertised>,
    /// Whether the user named places where members may be.
    has_seeds: bool,
    /// Whether the LAN may hear of this node by multicast DNS.
    mdns: bool,
    /// The name that the user gave this node, until the cluster was asked for it.
    wanted: std::sync::Mutex<Option<String>>,
    /// What tells this machine from others.
    host: String,
    place: watch::Sender<Place>,
    /// One change at a time.
    changing: Mutex<()>,
}

impl Lan {
    /// Makes the handle.
    pub(super) fn new(config: &Config, cluster: Cluster, discovery: Discovery) -> Self {
        Self {
            cluster,
            discovery,
            settings: config.folder.settings(),
            advertise: config.advertise.clone(),
            has_seeds: !config.seeds.is_empty(),
            mdns: config.mdns,
            wanted: std::sync::Mutex::new(config.name_given.then(|| config.name.clone())),
            host: config.host.clone(),
            place: watch::Sender::new(config.place),
            changing: Mutex::new(()),
        }
    }

    /// Returns where others reach this node.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        advertised(*self.place.borrow(), self.cluster.address(), &self.advertise)
    }

    /// Opens the LAN if it is not open yet, and remembers that, with the cluster's id.
    pub(crate) async fn open(&self) -> Result<(), LanError> {
        let _one = self.changing.lock().await;
        let mut changes = vec![("clusterId", Value::from(self.cluster.cluster_id()))];
        if *self.place.borrow() == Place::Silent {
            let address = self.bind(Place::Lan).await?;
            self.place.send_replace(Place::Lan);
            changes.push(("lan", Value::from(true)));
            tracing::info!(%address, "the LAN is open: other machines can reach this node");
        }
        Settings::change(&self.settings, &changes)?;
        Ok(())
    }

    async fn bind(&self, place: Place) -> Result<SocketAddr, LanError> {
        let address = place.bind();
        let bound = self.cluster.rebind(address).await;
        bound.map_err(|source| LanError::Rebind { address, source })
    }

    /// Tells the cluster where this node is.
    pub(crate) async fn describe(&self) -> Result<Vec<SocketAddr>, ProposeError> {
        let addresses = self.addresses();
        self.cluster.describe(None, self.host.clone(), addresses.clone()).await?;
        Ok(addresses)
    }

    /// Asks the cluster for the name that the user gave, if this node has another; waits a moment,
    /// and returns the name that it then has. Without a leader the name comes later.
    pub(super) async fn rename(&self, name: String) -> String {
        let wanted = self.wanted();
        if wanted.as_ref().is_none_or(|wanted| *wanted == name) {
            self.named();
            return name;
        }
        match tokio::time::timeout(RENAME_LIMIT, self.take_name()).await {
            Ok(Ok(())) => match own_name(&self.cluster) {
                Ok(Some(name)) => name,
                Ok(None) | Err(_) => name,
            },
            Ok(Err(_)) | Err(_) => name,
        }
    }

    /// Asks the cluster for the wanted name, and says what came of it.
    async fn take_name(&self) -> Result<(), ProposeError> {
        let Some(wanted) = self.wanted() else { return Ok(()) };
        let before = own_name(&self.cluster).ok().flatten();
        let told = self.cluster.describe(Some(wanted.clone()), self.host.clone(), self.addresses());
        match told.await {
            Ok(()) => {}
            // It will not be another answer another time.
            Err(error @ ProposeError::Rejected(_)) => {
                tracing::warn!("name {wanted:?} is refused by the cluster: {error}");
                self.named();
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.named();
        let (before, now) = (before.unwrap_or_default(), own_name(&self.cluster).ok().flatten());
        match now {
            Some(now) if now == wanted => tracing::info!("renamed from {before} to {now}"),
            Some(now) => tracing::warn!(
                "name {wanted:?} is taken in this cluster: this node is called {now}"
            ),
            None => {}
        }
        Ok(())
    }

    fn wanted(&self) -> Option<String> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn named(&self) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Goes back to loopback and silence.
    pub(crate) async fn close(&self, members: usize) -> Result<(), LanError> {
        let _one = self.changing.lock().await;
        let place = *self.place.borrow();
        if let Place::Given(address) = place {
            return Err(LanError::Given(address));
        }
        let others = members.saturating_sub(1);
        if others > 0 {
            return Err(LanError::Shared { others });
        }
        if place == Place::Lan {
            // The endpoint keeps its former socket until the next change, so that late packets
            // still arrive: only the second change leaves nothing on the LAN.
            self.bind(Place::Silent).await?;
            self.bind(Place::Silent).await?;
            self.place.send_replace(Place::Silent);
        }
        Settings::change(&self.settings, &[("lan", Value::Null)])?;
        tracing::info!("the LAN is closed: this node listens on loopback only");
        Ok(())
    }

    /// Says goodbye on the LAN.
    pub(super) async fn goodbye(&self, limit: Duration) {
        if !self.discovery.silence(limit).await {
            tracing::debug!("the goodbye on the LAN was not said in time");
        }
    }

    /// Keeps everything in agreement until the process stops.
    pub(super) async fn follow(self: Arc<Self>, token: CancellationToken) {
        let mut members = self.cluster.members_changed();
        let mut place = self.place.subscribe();
        let mut found = self.discovery.changes();
        let work = async {
            let mut search = None;
            let mut known = BTreeSet::new();
            loop {
                members.mark_unchanged();
                place.mark_unchanged();
                found.mark_unchanged();
                let present = *place.borrow();
                let open = present.is_open() && self.mdns;
                // On loopback seeds lead somewhere too; but a look there must not be heard.
                let at_seeds = self.has_seeds && present != Place::Silent && !self.mdns;
                let looks = open || at_seeds;
                let cluster = ClusterHint::of(self.cluster.cluster_id());
                match (&search, looks) {
                    (None, true) => search = Some(self.discovery.search(Wanted::Cluster(cluster))),
                    (Some(_), false) => search = None,
                    (None, false) | (Some(_), true) => {}
                }
                self.hand_on_seeds(search.as_ref());
                let again = if self.agree(cluster, open, &mut known).await { LOOK } else { AGAIN };
                tokio::select! {
                    changed = members.changed() => {
                        if changed.is_err() { return; }
                    }
                    changed = place.changed() => {
                        if changed.is_err() { return; }
                    }
                    changed = found.changed() => {
                        if changed.is_err() { return; }
                    }
                    () = tokio::time::sleep(again) => {}
                }
            }
        };
        token.run_until_cancelled(work).await;
    }

    /// Lets the log dial the user's seeds: behind each of them any other member may be.
    fn hand_on_seeds(&self, search: Option<&Search>) {
        let found = search.map(Search::candidates).unwrap_or_default();
        let seeds = found.into_iter().filter(|found| found.provenance == Provenance::Seed);
        let mut addresses: Vec<SocketAddr> = seeds.flat_map(|found| found.addresses).collect();
        if addresses.is_empty() {
            return;
        }
        let here = interfaces::list().unwrap_or_default();
        let here: Vec<IpAddr> = here.iter().map(|interface| interface.address).collect();
        let (bound, told) = (self.cluster.address(), self.addresses());
        addresses.retain(|address| !is_own(*address, bound, &told, &here));
        if !addresses.is_empty() {
            self.cluster.found_addresses(None, &addresses);
        }
    }

    /// Makes everything agree once; false when the cluster could not be told.
    async fn agree(&self, hint: ClusterHint, open: bool, known: &mut BTreeSet<NodeId>) -> bool {
        let state = self.cluster.look(|view| {
            let members = cluster::members(view)?;
            Ok((members, cluster::invites(view)?))
        });
        let (members, invites) = match state {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!("members cannot be read: {}", chain(&error));
                return false;
            }
        };
        let own = self.cluster.node();
        let mut present = BTreeSet::new();
        for member in members.iter().filter(|member| member.id != own) {
            present.insert(member.id);
            let told: Vec<SocketAddr> =
                member.addresses.iter().filter_map(|address| address.parse().ok()).collect();
            self.discovery.told(hint, member.id, &told);
            let addresses = self.discovery.addresses(hint, member.id);
            self.cluster.found_addresses(Some(member.id), &addresses);
        }
        for gone in known.difference(&present) {
            self.discovery.forget(hint, *gone);
        }
        *known = present;
        if open {
            // Ended ones too, behind the open ones: who comes with one shall be told so, and not
            // look for ever.
            let (open, ended): (Vec<_>, Vec<_>) =
                invites.into_iter().partition(|invite| invite.state == InviteState::Open);
            let ids = open.iter().chain(&ended).filter_map(|invite| invite.id.parse().ok());
            self.discovery.announce(self.announcement(hint, ids.collect()));
        } else if self.discovery.status().announced.is_some() {
            self.discovery.silence(Duration::ZERO).await;
        }
        self.tell(members.iter().find(|member| member.id == own)).await
    }

    fn announcement(
        &self,
        cluster: ClusterHint,
        invites: Vec<nexus_discovery::InviteId>,
    ) -> Announcement {
        let own = self.cluster.node();
        let status = self.cluster.local_status();
        let role = match status.members.iter().find(|member| member.id == own) {
            Some(member) => match member.role {
                MemberRole::Voter => Role::Voter,
                MemberRole::Learner => Role::Learner,
            },
            None => Role::Other,
        };
        let place = *self.place.borrow();
        let addresses = match place {
            // Elsewhere mDNS gives the addresses of the interface that it speaks on.
            Place::Given(address) if !address.ip().is_unspecified() => vec![address.ip()],
            Place::Given(_) | Place::Lan | Place::Silent => Vec::new(),
        };
        Announcement {
            record: Record { cluster, node: own, role, boot: self.cluster.nonce(), invites },
            port: self.cluster.address().port(),
            addresses,
        }
    }

    /// Tells the cluster where this node is, if it does not know.
    async fn tell(&self, own: Option<&Member>) -> bool {
        let addresses = self.addresses();
        let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        // A member that was removed has nothing to tell, and a silent one nobody to tell it to.
        let Some(own) = own else { return true };
        if self.wanted().is_some()
            && let Err(error) = self.take_name().await
        {
            tracing::debug!("the cluster could not be asked for a name: {error}");
            return false;
        }
        if own.addresses == texts || *self.place.borrow() == Place::Silent {
            return true;
        }
        match self.describe().await {
            Ok(_) => {
                tracing::info!(addresses = texts.join(" "), "told the cluster where this node is");
                true
            }
            Err(error) => {
                tracing::debug!("the cluster could not be told this node's addresses: {error}");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn no_member_is_looked_for_where_this_node_is() {
        let here = ["127.0.0.1", "10.0.0.5", "2001:db8::5"].map(|ip| ip.parse().unwrap());
        let told = [at("10.0.0.5:5689"), at("203.0.113.9:7777")];
        for (bound, address, own) in [
            ("[::]:5689", "10.0.0.5:5689", true),
            ("[::]:5689", "[2001:db8::5]:5689", true),
            ("[::]:5689", "127.0.0.1:5689", true),
            // Where a router leads to it.
            ("[::]:5689", "203.0.113.9:7777", true),
            ("[::]:5689", "10.0.0.6:5689", false),
            // Another node of this machine.
            ("[::]:5689", "10.0.0.5:5690", false),
            ("127.0.0.1:7000", "127.0.0.1:7000", true),
            ("127.0.0.1:7000", "127.0.0.1:7001", false),
            ("127.0.0.1:7000", "10.0.0.5:7000", false),
        ] {
            assert_eq!(is_own(at(address), at(bound), &told, &here), own, "{bound} {address}");
        }
    }

    #[test]
    fn what_is_told_follows_the_place() {
        let bound = at("127.0.0.1:7000");
        assert_eq!(advertised(Place::Silent, bound, &[]), [bound]);
        let given = Place::Given(at("127.0.0.1:0"));
        assert_eq!(advertised(given, bound, &[]), [at("127.0.0.1:7000")]);
        let settings = [
            Advertised { ip: at("10.0.0.1:1").ip(), port: Some(9) },
            Advertised { ip: at("10.0.0.2:1").ip(), port: None },
        ];
        let told = [at("10.0.0.1:9"), at("10.0.0.2:7000")];
        assert_eq!(advertised(Place::Lan, bound, &settings), told);
        assert_eq!(advertised(given, bound, &settings), told);
        assert_eq!(advertised(Place::Silent, bound, &settings), [bound]);
        let found = advertised(Place::Lan, bound, &[]);
        assert!(found.iter().all(|address| address.port() == 7000), "{found:?}");
        assert!(!found.iter().any(|address| address.ip().is_loopback()), "{found:?}");
    }
}
