//! Keys, certificates and codes, made and read back.

use std::time::Duration;

use rustls::pki_types::UnixTime;

use super::*;

/// Some time in 2026.
const NOW: u64 = 1_780_000_000_000;

fn authority() -> Authority {
    Authority::generate("c1", NOW).unwrap()
}

#[test]
fn a_certificate_names_key_node_and_cluster() {
    let key = NodeKey::generate().unwrap();
    let certificate = authority().issue(42, "c1", &key.public_key(), NOW).unwrap();
    let subject = Subject::read(&certificate).unwrap();
    assert_eq!((subject.cluster.as_str(), subject.node), ("c1", 42));
    assert_eq!(subject.spki, key.public_key());
    assert_eq!(subject.not_before, NOW / 1000 - 24 * 3600);
    assert_eq!(subject.not_after, NOW / 1000 + 365 * 24 * 3600);
    assert!(!subject.due_for_renewal(NOW));
    assert!(subject.due_for_renewal(NOW + 183 * 24 * 3600 * 1000));
}

#[test]
fn an_authority_and_a_node_survive_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let first = authority();
    assert!(!Authority::is_in(folder.path()));
    first.save(folder.path()).unwrap();
    assert!(Authority::is_in(folder.path()));
    let second = Authority::load(folder.path()).unwrap();
    assert_eq!(first.certificate(), second.certificate());

    let key = NodeKey::generate().unwrap();
    key.save(folder.path()).unwrap();
    let key = NodeKey::load(folder.path()).unwrap();
    let own = second.issue(3, "c1", &key.public_key(), NOW).unwrap();
    let identity = NodeIdentity::new(key, vec![own, first.certificate().clone()]).unwrap();
    identity.save(folder.path()).unwrap();
    let again = NodeIdentity::load(folder.path()).unwrap();
    assert_eq!(again.chain(), identity.chain());
    assert_eq!(again.subject(), identity.subject());
    let derived = |identity: &NodeIdentity| identity.key().derive(b"purpose");
    assert_eq!(derived(&again), derived(&identity));
    assert_ne!(derived(&again), again.key().derive(b"another"));
}

#[cfg(unix)]
#[test]
fn key_files_are_for_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    authority().save(folder.path()).unwrap();
    NodeKey::generate().unwrap().save(folder.path()).unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
    }
}

#[test]
fn missing_and_damaged_files_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let error = NodeKey::load(folder.path()).unwrap_err();
    assert!(matches!(&error, IdentityError::File(file) if file.is_missing()), "{error:?}");
    std::fs::write(folder.path().join("node.key"), "rubbish").unwrap();
    let error = NodeKey::load(folder.path()).unwrap_err();
    assert!(matches!(&error, IdentityError::File(file) if !file.is_missing()), "{error:?}");
    assert!(error.to_string().contains("node.key"), "{error}");

    let key = NodeKey::generate().unwrap();
    key.save(folder.path()).unwrap();
    std::fs::write(folder.path().join("node.crt"), "no certificate here").unwrap();
    assert!(matches!(NodeIdentity::load(folder.path()), Err(IdentityError::File(_))));
    let other = NodeKey::generate().unwrap();
    let foreign = authority().issue(3, "c1", &other.public_key(), NOW).unwrap();
    let error = NodeIdentity::new(key, vec![foreign]).unwrap_err();
    assert!(matches!(error, IdentityError::OtherKey), "{error:?}");
}

#[test]
fn an_authority_with_the_key_of_another_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    authority().save(folder.path()).unwrap();
    let kept = std::fs::read(folder.path().join("authority.crt")).unwrap();
    authority().save(folder.path()).unwrap();
    std::fs::write(folder.path().join("authority.crt"), kept).unwrap();
    let error = Authority::load(folder.path()).unwrap_err();
    assert!(error.to_string().contains("belongs to another key"), "{error}");
}

#[test]
fn only_plain_cluster_ids_and_real_keys_are_certified() {
    let key = NodeKey::generate().unwrap();
    for bad in ["", "a/b", "a b", "ü", &"x".repeat(65)] {
        let error = authority().issue(1, bad, &key.public_key(), NOW).unwrap_err();
        assert!(matches!(error, AuthorityError::ClusterId(_)), "{bad:?}: {error:?}");
    }
    let error = authority().issue(1, "c1", b"no key", NOW).unwrap_err();
    assert!(matches!(error, AuthorityError::PublicKey(_)), "{error:?}");
}

#[test]
fn a_proof_holds_for_its_key_and_its_connection() {
    let key = NodeKey::generate().unwrap();
    let proof = key.prove_join(&[7; 32]).unwrap();
    let public = key.public_key();
    assert!(join_proof_is_valid(&public, &[7; 32], &proof));
    assert!(!join_proof_is_valid(&public, &[8; 32], &proof));
    let other = NodeKey::generate().unwrap().public_key();
    assert!(!join_proof_is_valid(&other, &[7; 32], &proof));
    assert!(!join_proof_is_valid(&public, &[7; 32], b""));
    assert!(!join_proof_is_valid(b"no key", &[7; 32], &proof));
    assert!(!join_proof_is_valid(&[&public[..], b"x"].concat(), &[7; 32], &proof));
}

#[test]
fn times_are_read_with_tolerance_and_not_beyond() {
    let subject = Subject {
        cluster: "c1".to_owned(),
        node: 1,
        spki: Vec::new(),
        not_before: 1_000_000_000,
        not_after: 1_100_000_000,
    };
    let day = 24 * 3600;
    for (now, expected) in [
        (1_050_000_000, 1_050_000_000),
        (1_000_000_000 - day, 1_000_000_000),
        (1_000_000_000 - day - 1, 1_000_000_000 - day - 1),
        (1_100_000_000 + 90 * day, 1_100_000_000),
        (1_100_000_000 + 90 * day + 1, 1_100_000_000 + 90 * day + 1),
    ] {
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        assert_eq!(lenient_time(&subject, now).as_secs(), expected);
    }
}

#[test]
fn a_code_reads_back_and_hides_its_secret() {
    for role in [InviteRole::Voter, InviteRole::Learner, InviteRole::Auto] {
        let code = InviteCode::generate(role, authority().fingerprint()).unwrap();
        let text = code.encode();
        let parts: Vec<_> = text.split('.').collect();
        assert_eq!(parts[..2], ["nexus1", role.as_str()]);
        assert_eq!((parts[2].len(), parts[3].len(), parts[4].len()), (52, 6, 32));
        assert_eq!(InviteCode::parse(&format!(" {text}\n")).unwrap(), code);
        assert!(!format!("{code:?}").contains(parts[4]));
        assert!(code.secret_hash().matches(code.secret()));
        assert!(!code.secret_hash().matches(b"guess"));
    }
    let first = InviteCode::generate(InviteRole::Auto, authority().fingerprint()).unwrap();
    let second = InviteCode::generate(InviteRole::Auto, authority().fingerprint()).unwrap();
    assert_ne!((first.id(), first.secret()), (second.id(), second.secret()));
}

#[test]
fn a_wrong_code_says_what_is_wrong_and_never_its_secret() {
    let code = InviteCode::generate(InviteRole::Voter, authority().fingerprint()).unwrap();
    let text = code.encode();
    let parts: Vec<&str> = text.split('.').collect();
    let with = |at: usize, part: &str| {
        let mut parts = parts.clone();
        parts[at] = part;
        parts.join(".")
    };
    let truncated = |part| InviteError::Truncated { part };
    let long = format!("{}a", parts[4]);
    let cases = [
        (String::new(), InviteError::Prefix),
        ("hello world".to_owned(), InviteError::Prefix),
        (with(0, "nexus2"), InviteError::Version { found: "nexus2".to_owned() }),
        (with(0, "nexusxy"), InviteError::Prefix),
        (with(1, "boss"), InviteError::Role { found: "boss".to_owned() }),
        (with(2, "abc"), truncated("authority")),
        (with(3, "abc"), truncated("id")),
        (with(3, "abc!ef"), InviteError::Characters { part: "id" }),
        (with(4, &parts[4][..31]), truncated("secret")),
        (with(4, ""), truncated("secret")),
        (
            with(4, &parts[4].replace(|c: char| c.is_ascii_digit(), "1").to_uppercase()),
            InviteError::Characters { part: "secret" },
        ),
        (with(4, &long), InviteError::TooLong { part: "secret" }),
        (format!("{text}.more"), InviteError::TooLong { part: "secret" }),
        (parts[..4].join("."), truncated("secret")),
        (parts[..2].join("."), truncated("authority")),
    ];
    for (text, expected) in cases {
        let error = InviteCode::parse(&text).unwrap_err();
        assert_eq!(error, expected, "{text}");
        assert!(!error.to_string().contains(parts[4]), "{error}");
    }
    // The secret in the place of the role is not shown whole either.
    let error = InviteCode::parse(&with(1, parts[4])).unwrap_err();
    assert!(!error.to_string().contains(parts[4]), "{error}");
}
