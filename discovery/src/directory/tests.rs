//! The directory as a table of situations.

use proptest::prelude::*;

use super::*;
use crate::interfaces::Medium;

const NOW: u64 = 1_000_000;

fn cluster() -> ClusterHint {
    ClusterHint::of("ours")
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn record(node: u64, invites: &[&str]) -> Record {
    let invites = invites.iter().map(|id| id.parse().unwrap()).collect();
    Record { cluster: cluster(), node, role: Role::Voter, boot: 1, invites }
}

fn desk() -> Directory {
    let mut directory = Directory::default();
    let own = |name: &str, medium, address: &str, prefix| Interface {
        name: name.to_owned(),
        index: None,
        medium,
        address: address.parse().unwrap(),
        prefix,
    };
    directory.set_interfaces(vec![
        own("lo", Medium::Loopback, "127.0.0.1", 8),
        own("eth0", Medium::Wired, "192.168.1.5", 24),
        own("docker0", Medium::Virtual, "172.18.0.1", 16),
    ]);
    directory
}

#[test]
fn the_lan_comes_first_and_loopback_and_containers_last() {
    let mut directory = desk();
    let listed = ["127.0.0.1:1", "172.18.0.2:1", "[fe80::2%2]:1", "10.0.0.2:1", "192.168.1.2:1"];
    directory.saw("a", record(2, &[]), &listed.map(at), NOW);
    let wanted = ["192.168.1.2:1", "10.0.0.2:1", "[fe80::2%2]:1", "172.18.0.2:1", "127.0.0.1:1"];
    assert_eq!(directory.addresses(cluster(), 2, NOW), wanted.map(at));
    assert!(directory.addresses(cluster(), 3, NOW).is_empty());
    assert!(directory.addresses(ClusterHint::of("theirs"), 2, NOW).is_empty());
}

#[test]
fn what_worked_last_comes_first_until_it_fails() {
    let mut directory = desk();
    let (near, routed, bridge) = (at("192.168.1.2:1"), at("10.0.0.2:1"), at("172.18.0.2:1"));
    directory.told(cluster(), 2, &[near, routed]);
    assert!(directory.worked(cluster(), 2, routed, NOW));
    assert!(!directory.worked(cluster(), 2, routed, NOW + 1), "the same again is no news");
    directory.worked(cluster(), 2, bridge, NOW + 5);
    assert_eq!(directory.addresses(cluster(), 2, NOW + 9), [bridge, routed, near]);
    assert!(directory.failed(cluster(), 2, bridge, NOW + 10));
    assert!(!directory.failed(cluster(), 2, bridge, NOW + 11));
    assert_eq!(directory.addresses(cluster(), 2, NOW + 12), [routed, near, bridge]);
    let later = NOW + 11 + FAILED_MILLIS;
    assert_eq!(directory.addresses(cluster(), 2, later), [bridge, routed, near]);
    assert!(directory.failed(cluster(), 2, bridge, later), "after a minute it is news again");
}

#[test]
fn an_announcement_ends_by_goodbye_by_time_and_by_doubt() {
    let mut directory = desk();
    let found = |directory: &Directory, now| directory.addresses(cluster(), 2, now).len();
    directory.saw("a", record(2, &[]), &[at("192.168.1.2:1")], NOW);
    assert!(directory.gone("a") && !directory.gone("a"));
    assert_eq!(found(&directory, NOW), 0);

    directory.saw("a", record(2, &[]), &[at("192.168.1.2:1")], NOW);
    assert_eq!(found(&directory, NOW + ANNOUNCED_MILLIS), 0);
    assert!(directory.expire(NOW + ANNOUNCED_MILLIS) && !directory.expire(u64::MAX));

    directory.saw("a", record(2, &[]), &[at("192.168.1.2:1")], NOW);
    directory.doubt(NOW);
    assert_eq!(found(&directory, NOW + DOUBTED_MILLIS - 1), 1);
    assert_eq!(found(&directory, NOW + DOUBTED_MILLIS), 0);
    let again = directory.saw("a", record(2, &[]), &[at("192.168.1.2:1")], NOW + 5);
    assert!(!again, "seeing the same again renews it without news");
    assert_eq!(found(&directory, NOW + DOUBTED_MILLIS), 1);
}

#[test]
fn a_joiner_finds_its_inviter_and_no_stranger() {
    let mut directory = desk();
    directory.saw("a", record(2, &["aaaa11"]), &[at("192.168.1.2:1")], NOW);
    directory.saw("b", record(3, &["bbbb22"]), &[at("192.168.1.3:1")], NOW);
    directory.told(cluster(), 4, &[at("192.168.1.4:1")]);
    let hint = Hint::Invite("BBBB22".parse().unwrap());
    let found = directory.candidates(&hint, NOW);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].node, Some((cluster(), 3)));
    assert_eq!(found[0].provenance, Provenance::Mdns);

    directory.seeds(&[at("10.0.0.9:1"), at("0.0.0.0:1"), at("10.0.0.9:1")]);
    let found = directory.candidates(&hint, NOW);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].node, found[0].provenance), (None, Provenance::Seed));
}

#[test]
fn a_cluster_is_found_through_every_provenance_what_worked_first() {
    let mut directory = desk();
    directory.told(cluster(), 2, &[at("192.168.1.2:1")]);
    directory.told(cluster(), 3, &[at("192.168.1.3:1")]);
    directory.saw("d", record(4, &[]), &[at("192.168.1.4:1")], NOW);
    let ids = |directory: &Directory| -> Vec<u64> {
        let found = directory.candidates(&Hint::Cluster(cluster()), NOW);
        found.iter().filter_map(|found| found.node).map(|(_, id)| id).collect()
    };
    assert_eq!(ids(&directory), [4, 2, 3]);
    directory.worked(cluster(), 3, at("192.168.1.3:1"), NOW);
    assert_eq!(ids(&directory), [3, 4, 2]);
    assert_eq!(directory.candidates(&Hint::Node(cluster(), 2), NOW).len(), 1);
    assert!(directory.forget(cluster(), 3));
    assert_eq!(ids(&directory), [4, 2]);
}

#[test]
fn forged_announcements_leave_room_for_what_was_told() {
    let mut directory = desk();
    let told: Vec<SocketAddr> = (1..=3).map(|n| at(&format!("10.9.9.{n}:1"))).collect();
    directory.told(cluster(), 2, &told);
    for instance in 0..20 {
        let forged: Vec<SocketAddr> =
            (1..=8).map(|n| at(&format!("192.168.1.{}:1", instance * 8 + n))).collect();
        directory.saw(&format!("x{instance}"), record(2, &[]), &forged, NOW + instance);
    }
    let addresses = directory.addresses(cluster(), 2, NOW + 30);
    assert_eq!(addresses.len(), ADDRESSES_MAX);
    assert!(told.iter().all(|address| addresses.contains(address)), "{addresses:?}");
}

#[test]
fn a_flood_of_strangers_does_not_push_out_what_is_looked_for() {
    let mut directory = desk();
    let hint = Hint::Invite("aaaa11".parse().unwrap());
    directory.want(hint.clone());
    directory.saw("inviter", record(2, &["aaaa11"]), &[at("192.168.1.2:1")], NOW);
    for n in 0..200 {
        directory.saw(&format!("x{n}"), record(1000 + n, &[]), &[at("192.168.1.3:1")], NOW + n);
    }
    assert_eq!(directory.announced.len(), INSTANCES_MAX);
    assert_eq!(directory.candidates(&hint, NOW + 200).len(), 1);
    directory.unwant(&hint);
    assert!(directory.wanted.is_empty());
}

proptest! {
    #[test]
    fn bounds_hold_whatever_is_announced(
        steps in proptest::collection::vec(
            (0_u8..3, 0_u64..200, 0_u64..100, proptest::collection::vec(any::<[u8; 5]>(), 0..20)),
            0..300,
        ),
    ) {
        let mut directory = desk();
        for (step, (kind, node, instance, raw)) in steps.into_iter().enumerate() {
            let addresses: Vec<SocketAddr> = raw
                .iter()
                .map(|[a, b, c, d, port]| SocketAddr::from(([*a, *b, *c, *d], u16::from(*port))))
                .collect();
            let now = NOW + u64::try_from(step).unwrap();
            match kind {
                0 => {
                    let record = record(node.max(1), &[]);
                    directory.saw(&instance.to_string(), record, &addresses, now);
                }
                1 => { directory.told(cluster(), node, &addresses); }
                _ => for address in addresses {
                    directory.worked(cluster(), node, address, now);
                },
            }
            let given = directory.addresses(cluster(), node, now);
            prop_assert!(given.len() <= ADDRESSES_MAX);
        }
        prop_assert!(directory.announced.len() <= INSTANCES_MAX);
        prop_assert!(directory.told.len() <= INSTANCES_MAX);
        prop_assert!(directory.dials.len() <= DIALS_MAX);
        let found = directory.candidates(&Hint::Cluster(cluster()), NOW + 300);
        prop_assert!(found.iter().all(|found| !found.addresses.is_empty()));
    }
}
