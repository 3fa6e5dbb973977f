//! The codec against its own records and against hostile ones.

use proptest::prelude::*;

use super::*;

/// A whole record stays below this, so that it fits one packet beside the other records.
const RECORD_BYTES_MAX: usize = 400;

fn decode(properties: &[(&str, &[u8])]) -> Result<Record, RecordError> {
    Record::decode(properties.iter().map(|(key, value)| (*key, Some(*value))))
}

fn sample() -> Record {
    Record {
        cluster: ClusterHint::of("a cluster"),
        node: 7,
        role: Role::Voter,
        boot: 0x00ab_cdef_0123_4567,
        invites: vec!["q7x2mk".parse().unwrap(), "ABCDEF".parse().unwrap()],
    }
}

fn size(properties: &[(&'static str, String)]) -> usize {
    properties.iter().map(|(key, value)| key.len() + value.len() + 2).sum()
}

#[test]
fn a_record_reads_as_it_was_written() {
    let record = sample();
    let properties = record.encode();
    let read = Record::decode(properties.iter().map(|(k, v)| (*k, Some(v.as_bytes())))).unwrap();
    assert_eq!(read, record);
    assert_eq!(read.invites[1].to_string(), "abcdef");
}

#[test]
fn the_bytes_of_version_1_do_not_change() {
    let text: Vec<String> = sample().encode().iter().map(|(k, v)| format!("{k}={v}")).collect();
    let cid = format!("cid={}", ClusterHint::of("a cluster"));
    let golden =
        ["v=1", cid.as_str(), "nid=7", "role=voter", "boot=00abcdef01234567", "inv=q7x2mk,abcdef"];
    assert_eq!(text, golden);
    assert_eq!(ClusterHint::of("").to_string(), "e3b0c442");
}

#[test]
fn another_version_is_told_from_rubbish() {
    let newer = decode(&[("v", b"2"), ("cid", b"not hexadecimal"), ("new", b"x")]);
    assert_eq!(newer, Err(RecordError::OtherVersion("2".to_owned())));
    assert_eq!(decode(&[]), Err(RecordError::Missing("v")));
    assert_eq!(decode(&[("v", b"1")]), Err(RecordError::Missing("cid")));
}

#[test]
fn what_is_unknown_is_ignored_and_the_first_of_two_counts() {
    let record = decode(&[
        ("V", b"1"),
        ("cid", b"0badcafe"),
        ("nid", b"3"),
        ("nid", b"4"),
        ("role", b"witness"),
        ("boot", b"0000000000000001"),
        ("later", b"\xff\xff"),
        ("inv", b"ok12,no,,also ok,OK34"),
    ])
    .unwrap();
    assert_eq!((record.node, record.role), (3, Role::Other));
    let invites: Vec<String> = record.invites.iter().map(ToString::to_string).collect();
    assert_eq!(invites, ["ok12", "ok34"]);
}

#[test]
fn malformed_values_name_their_property() {
    let cases: &[(&str, &[u8])] = &[
        ("cid", b"+badcafe"),
        ("cid", b"0badcafe0"),
        ("nid", b"0"),
        ("nid", b"+1"),
        ("nid", b""),
        ("nid", b"18446744073709551616"),
        ("boot", b"1"),
        ("boot", b"\xff"),
        ("inv", b"\xc3\x28"),
    ];
    for (key, value) in cases {
        let mut properties: Vec<(&str, &[u8])> = vec![
            ("v", b"1"),
            ("cid", b"0badcafe"),
            ("nid", b"3"),
            ("boot", b"0000000000000001"),
            ("inv", b""),
        ];
        for property in &mut properties {
            if property.0 == *key {
                property.1 = value;
            }
        }
        let error = decode(&properties).unwrap_err().to_string();
        assert!(error.contains(key), "{error} does not name {key}");
    }
}

#[test]
fn too_much_is_refused_before_it_is_read() {
    let long = vec![b'x'; FOREIGN_BYTES_MAX];
    assert_eq!(decode(&[("v", b"1"), ("x", &long)]), Err(RecordError::TooLarge));
    let many: Vec<(&str, &[u8])> = vec![("x", b""); PROPERTIES_MAX + 1];
    assert_eq!(decode(&many), Err(RecordError::TooLarge));
}

proptest! {
    #[test]
    fn hostile_properties_never_panic(
        properties in proptest::collection::vec(
            (
                prop_oneof!["v|cid|nid|role|boot|inv|V|INV", ".{0,12}"],
                proptest::option::of(prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..300),
                    "1|[0-9a-f]{8}|[0-9a-f]{16}|[a-z0-9]{1,20}(,[a-z0-9]{1,20}){0,40}"
                        .prop_map(String::into_bytes),
                ]),
            ),
            0..40,
        ),
    ) {
        let read =
            Record::decode(properties.iter().map(|(k, v)| (k.as_str(), v.as_deref())));
        if let Ok(record) = read {
            prop_assert!(record.node != 0 && record.invites.len() <= INVITES_MAX);
            prop_assert!(size(&record.encode()) < RECORD_BYTES_MAX);
        }
    }

    #[test]
    fn every_record_is_small_and_reads_back(
        cluster in any::<[u8; 8]>(),
        node in 1..=u64::MAX,
        boot in any::<u64>(),
        role in prop_oneof![Just(Role::Voter), Just(Role::Learner), Just(Role::Other)],
        invites in proptest::collection::vec("[A-Za-z0-9]{4,16}", 0..40),
    ) {
        let invites = invites.iter().map(|id| id.parse().unwrap()).collect();
        let record = Record { cluster: ClusterHint::of(cluster), node, role, boot, invites };
        let properties = record.encode();
        prop_assert!(size(&properties) < RECORD_BYTES_MAX);
        prop_assert!(properties.iter().all(|(key, value)| key.len() + value.len() < 255));
        let read =
            Record::decode(properties.iter().map(|(k, v)| (*k, Some(v.as_bytes())))).unwrap();
        prop_assert!(record.invites.starts_with(&read.invites));
        let invites = read.invites.clone();
        prop_assert_eq!(read, Record { invites, ..record });
    }
}
