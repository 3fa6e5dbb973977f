//! Discovery over a LAN inside the process.

use nexus_rt::ManualClock;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);
/// Long enough that what would be seen is seen, where a test shows that nothing is.
const QUIET: Duration = Duration::from_millis(200);

fn announcement(node: u64, boot: u64, invites: &[&str]) -> Announcement {
    let invites = invites.iter().map(|id| id.parse().unwrap()).collect();
    let cluster = ClusterHint::of("ours");
    let record = Record { cluster, node, role: Role::Voter, boot, invites };
    Announcement { record, port: 7000, addresses: vec!["10.0.0.7".parse().unwrap()] }
}

struct Desk {
    jobs: Jobs,
    lan: memory::Lan,
}

impl Desk {
    fn new() -> Self {
        Self { jobs: Jobs::new(), lan: memory::Lan::new() }
    }

    fn start(&self, announce: Option<Announcement>, seeds: &[&str]) -> Discovery {
        Discovery::start(Config {
            announce,
            seeds: seeds.iter().map(|seed| seed.parse().unwrap()).collect(),
            lan: Lan::Memory(self.lan.clone()),
            clock: Arc::new(ManualClock::new(0)),
            jobs: self.jobs.clone(),
        })
    }
}

fn inviter() -> Hint {
    Hint::Invite("abc123".parse().unwrap())
}

#[tokio::test]
async fn a_joiner_finds_its_inviter_by_the_code_alone() {
    let desk = Desk::new();
    let _stranger = desk.start(Some(announcement(2, 1, &["zzz999"])), &[]);
    let node = desk.start(None, &[]);
    let joiner = desk.start(None, &[]);
    let mut search = joiner.search(inviter());
    assert_eq!(search.next(QUIET).await, None);
    node.announce(announcement(1, 1, &["abc123"]));
    let found = search.next(LIMIT).await.expect("the inviter is announced now");
    assert_eq!(found.node, Some((ClusterHint::of("ours"), 1)));
    assert_eq!(found.addresses, ["10.0.0.7:7000".parse().unwrap()]);
    assert_eq!(search.next(QUIET).await, None, "nothing is given twice");
    search.again();
    assert_eq!(search.next(LIMIT).await, Some(found));
}

#[tokio::test]
async fn silence_says_goodbye_and_an_invite_can_be_taken_back() {
    let desk = Desk::new();
    let node = desk.start(Some(announcement(1, 1, &["abc123"])), &[]);
    let joiner = desk.start(None, &[]);
    let search = joiner.search(inviter());
    let mut changes = joiner.changes();
    changes.wait_for(|_| !search.candidates().is_empty()).await.unwrap();
    node.announce(announcement(1, 1, &[]));
    let gone = changes.wait_for(|known| known.candidates(&inviter(), 0).is_empty());
    tokio::time::timeout(LIMIT, gone).await.expect("the invite is announced no more").unwrap();
    assert!(node.silence(LIMIT).await);
    assert_eq!(node.status().activity, Activity::Silent);
    let cluster = Hint::Cluster(ClusterHint::of("ours"));
    let gone = changes.wait_for(|known| known.candidates(&cluster, 0).is_empty());
    tokio::time::timeout(LIMIT, gone).await.expect("the node is announced no more").unwrap();
}

#[tokio::test]
async fn nothing_is_seen_or_resolved_before_somebody_looks() {
    let desk = Desk::new();
    let _node = desk.start(Some(announcement(1, 1, &["abc123"])), &[]);
    let silent = desk.start(None, &["10.0.0.9:1", "[fe80::1%nowhere0]:1"]);
    let mut changes = silent.changes();
    changes.mark_unchanged();
    assert!(tokio::time::timeout(QUIET, changes.changed()).await.is_err());

    let mut search = silent.search(inviter());
    let (mut seed, mut node) = (None, None);
    while seed.is_none() || node.is_none() {
        let found = search.next(LIMIT).await.expect("a seed and a node are there");
        let slot = if found.node.is_some() { &mut node } else { &mut seed };
        *slot = Some(found);
    }
    assert_eq!(seed.map(|found| found.provenance), Some(Provenance::Seed));
    let troubles = silent.status().seed_troubles;
    assert!(troubles.len() == 1 && troubles[0].contains("nowhere0"), "{troubles:?}");
}

#[tokio::test]
async fn find_returns_at_once_or_at_the_end_of_its_time() {
    let desk = Desk::new();
    let joiner = desk.start(None, &[]);
    assert!(joiner.find(inviter(), QUIET).await.is_empty());
    let _node = desk.start(Some(announcement(1, 1, &["abc123"])), &[]);
    assert_eq!(joiner.find(inviter(), LIMIT).await.len(), 1);
}

#[tokio::test]
async fn a_failed_dial_waits_behind_one_that_worked() {
    let desk = Desk::new();
    let cluster = ClusterHint::of("ours");
    let (good, bad) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
    let first = desk.start(None, &[]);
    first.told(cluster, 3, &[bad, good]);
    first.worked(cluster, 3, good);
    first.failed(cluster, 3, bad);
    assert_eq!(first.addresses(cluster, 3), [good, bad]);
    first.forget(cluster, 3);
    assert!(first.addresses(cluster, 3).is_empty());
}

#[tokio::test]
async fn a_place_with_ever_new_addresses_is_not_given_for_ever() {
    let desk = Desk::new();
    let node = desk.start(None, &[]);
    let joiner = desk.start(None, &[]);
    let mut search = joiner.search(inviter());
    let mut given = 0;
    for turn in 0..=255_u8 {
        let mut forged = announcement(1, 1, &["abc123"]);
        forged.addresses = vec![[10, 1, 1, turn].into()];
        forged.port = 7000 + u16::from(turn);
        node.announce(forged);
        let limit = if given < GIVEN_PER_PLACE_MAX { LIMIT } else { Duration::ZERO };
        match search.next(limit).await {
            Some(_) => given += 1,
            None => break,
        }
    }
    assert_eq!(given, GIVEN_PER_PLACE_MAX);
}

#[tokio::test]
async fn the_jobs_end_with_the_last_handle_and_at_shutdown() {
    let desk = Desk::new();
    let node = desk.start(Some(announcement(1, 1, &[])), &["10.0.0.9:1"]);
    let other = desk.start(Some(announcement(2, 1, &[])), &["10.0.0.9:1"]);
    let _search = other.search(inviter());
    drop(node);
    assert_eq!(desk.jobs.shutdown(LIMIT).await, Vec::<&str>::new());
}
