//! The cluster as people see it.

use nexus_contract::http::{
    ClusterView, DifferenceView, DigestPoint, DigestView, Done, MemberState, MemberView, Role,
};
use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::cluster;
use nexus_raft::{
    CertificateLife, Cluster, Difference, DigestAt, MemberRole, MemberStatus, Status,
};

use super::{errors, time};

/// So many days before its end a certificate that was not renewed is worth a warning: a quarter of
/// its life, when it should have been renewed at half of it.
const CERTIFICATE_DAYS: u64 = 90;

/// Returns the cluster in its leader's view, or in this node's own when no leader answers.
pub(crate) async fn view(handle: &Cluster) -> ClusterView {
    let status = handle.status().await;
    let mut view = shown(&status, handle.node());
    view.as_of = status.stale.then(|| super::as_of(handle, status.as_of));
    view.warnings.extend(certificate_warning(&handle.certificate(), &view.node));
    view
}

/// Says that a node will be cut off when its certificate ends, while there is time to do something.
fn certificate_warning(life: &CertificateLife, node: &str) -> Option<String> {
    let trouble = life.trouble.as_ref().filter(|_| life.days_left <= CERTIFICATE_DAYS)?;
    Some(format!(
        "the certificate of {node} ends in {} days and could not be renewed ({trouble}): start the \
         machine that holds authority.key, or put the copies of authority.key and authority.crt \
         into the data folder of a member and start that one again",
        life.days_left
    ))
}

fn shown(status: &Status, own: u64) -> ClusterView {
    ClusterView {
        cluster: status.cluster.clone(),
        node: name(status, own),
        leader: status.leader.map(|leader| name(status, leader)),
        term: status.term,
        applied: status.applied,
        quorum: u32::try_from(status.quorum).unwrap_or(u32::MAX),
        tolerance: u32::try_from(status.tolerance).unwrap_or(u32::MAX),
        members: status.members.iter().map(member).collect(),
        stale: status.stale.then_some(true),
        as_of: None,
        differs: status.differs.as_ref().map(|difference| DifferenceView {
            index: difference.index,
            majority: difference.majority,
            members: difference.members.iter().map(|id| name(status, *id)).collect(),
        }),
        warnings: warnings(status),
    }
}

/// Returns what people call a member.
fn name(status: &Status, id: u64) -> String {
    let member = status.members.iter().find(|member| member.id == id);
    member.map_or_else(|| format!("node {id}"), |member| member.name.clone())
}

fn member(member: &MemberStatus) -> MemberView {
    MemberView {
        id: member.id,
        name: member.name.clone(),
        role: match member.role {
            MemberRole::Voter => Role::Voter,
            MemberRole::Learner => Role::Learner,
        },
        state: match member.state {
            nexus_raft::MemberState::Up => MemberState::Up,
            nexus_raft::MemberState::Asleep => MemberState::Asleep,
            nexus_raft::MemberState::Down => MemberState::Down,
            nexus_raft::MemberState::Joining => MemberState::Joining,
        },
        addresses: member.addresses.clone(),
        version: member.version.clone(),
        lag: Some(member.lag),
        since: (member.since > 0).then(|| time::text(member.since)),
    }
}

/// Says what a user should know: which machines writes depend on, and who alone can let others in.
fn warnings(status: &Status) -> Vec<String> {
    let refused = status.refused.as_ref();
    let mut warnings: Vec<String> = refused
        .map(|text| format!("another member refuses this node: {text}"))
        .into_iter()
        .collect();
    let voters = |up: bool| {
        let of = status.members.iter().filter(move |member| {
            member.role == MemberRole::Voter && (member.state == nexus_raft::MemberState::Up) == up
        });
        of.map(|member| member.name.as_str()).collect::<Vec<_>>()
    };
    let (up, away) = (voters(true), voters(false));
    if !status.members.is_empty() && status.members.iter().all(|it| it.id != status.node) {
        // Who may vote among the others is none of its business any more.
        warnings.push(
            "this node is no member of the cluster any more: it was removed; to come back, stop \
             it, move its data folder away, and join with a new code: nexus up --join CODE"
                .to_owned(),
        );
        return warnings;
    } else if super::count(up.len()) < status.quorum {
        warnings.push(format!(
            "writes wait: {} of the voters must be there, and {} away; wake them or check the \
             network",
            status.quorum,
            with_verb(&away)
        ));
    } else if !away.is_empty() && status.tolerance == 0 {
        warnings.push(format!(
            "{} away; writes stop as soon as one more is of: {}",
            with_verb(&away),
            up.join(", ")
        ));
    } else if status.members.len() > 1 && status.tolerance == 0 {
        warnings.push(format!(
            "writes stop when {} is away; three voters can do without one: nexus invite --voter",
            in_words(&up, "or")
        ));
    }
    warnings.extend(status.differs.as_ref().map(|found| difference_warning(status, found)));
    let first = status.members.iter().find(|member| member.id == cluster::FIRST_NODE);
    match first {
        Some(first) if status.members.len() > 1 => warnings.push(format!(
            "{} alone holds the key that lets machines join: keep a copy of authority.key and \
             authority.crt from its data folder in a safe place",
            first.name
        )),
        None if !status.members.is_empty() && !status.stale => warnings.push(
            "the first node was removed, and with it the key that lets machines join and renews \
             certificates, unless copies of authority.key and authority.crt were put into the data \
             folder of a member, which was started again"
                .to_owned(),
        ),
        Some(_) | None => {}
    }
    warnings
}

/// Writes names as a sentence does: `a`, `a and b`, `a, b and c`.
fn in_words(names: &[&str], last: &str) -> String {
    match names {
        [] => "nobody".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

fn with_verb(names: &[&str]) -> String {
    let verb = if names.len() > 1 { "are" } else { "is" };
    format!("{} {verb}", in_words(names, "and"))
}

/// Says whose state differs, and what to do.
fn difference_warning(status: &Status, found: &Difference) -> String {
    let names: Vec<String> = found.members.iter().map(|id| name(status, *id)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let first = names.first().copied().unwrap_or("NAME");
    let (all, index) = (in_words(&names, "and"), found.index);
    if found.majority {
        return format!(
            "the state of {all} differs from that of most members at entry {index}, so it stops; \
             replace it: nexus node remove {first}, then join again with an empty folder"
        );
    }
    format!(
        "the states of {all} differ at entry {index}, and no majority has one of them: look at \
         nexus status --digest on each, replace the one whose disk is damaged, and report it"
    )
}

/// Returns this node's digests.
pub(crate) fn digest(handle: &Cluster) -> Result<DigestView, ApiError> {
    let report = handle.digests().map_err(|error| errors::read(&error))?;
    let own = handle.node();
    let member = handle.look(|view| cluster::member(view, own));
    let member = member.map_err(|error| errors::read(&error))?;
    let point = |mark: &DigestAt| DigestPoint {
        index: mark.index,
        content: mark.content.clone(),
        books: mark.books.clone(),
    };
    Ok(DigestView {
        node: member.map_or_else(|| format!("node {own}"), |member| member.name),
        now: point(&report.now),
        kept: report.history.iter().map(point).collect(),
    })
}

/// Says what is lost with the first node. Who else got copies of its key, the cluster is not told.
fn first_is_kept(name: &str) -> ApiError {
    ApiError::new(
        ErrorCode::Conflict,
        format!(
            "{name} is the first node: as far as is known it alone holds authority.key, without \
             which no machine can join any more and no certificate is renewed. Copy authority.key \
             and authority.crt from its data folder into that of another member and start that one \
             again; then, or to lose the key, say --force (force=true), since the cluster is not \
             told who holds copies; nothing was done"
        ),
    )
}

/// Removes the member of that name or id; the first one only with `force`.
pub(crate) async fn remove(handle: &Cluster, name: &str, force: bool) -> Result<Done, ApiError> {
    let members =
        handle.look(|view| cluster::members(view)).map_err(|error| errors::read(&error))?;
    let named = members.iter().find(|member| member.name == name);
    let by_id = || {
        let id = name.parse::<u64>().ok()?;
        members.iter().find(|member| member.id == id)
    };
    let Some(member) = named.or_else(by_id) else {
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        return Err(ApiError::new(
            ErrorCode::NotFound,
            format!("member {name:?} does not exist; the members are {}", names.join(", ")),
        ));
    };
    if member.id == cluster::FIRST_NODE && members.len() > 1 && !force {
        return Err(first_is_kept(&member.name));
    }
    let look = if member.id == handle.node() {
        "this node is the one to be removed, and who is removed is told nothing more: look at \
         `nexus status` on another member"
    } else {
        "look at `nexus status`, best on another member, and remove it again if it is still there"
    };
    handle.remove(member.id).await.map_err(|error| errors::verb("node remove", error, look))?;
    Ok(Done::new(format!(
        "{} (node {}) is removed; its data folder is of no use to this cluster any more",
        member.name, member.id
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nexus_raft::MemberState::{self, Down, Up};

    fn member((name, state): (&str, MemberState), id: u64) -> MemberStatus {
        MemberStatus {
            id,
            name: name.to_owned(),
            role: MemberRole::Voter,
            state,
            addresses: Vec::new(),
            version: String::new(),
            lag: 0,
            since: 0,
        }
    }

    fn status(quorum: u64, tolerance: u64, voters: &[(&str, MemberState)]) -> Status {
        let members = voters.iter().zip(1..).map(|(voter, id)| member(*voter, id)).collect();
        Status { node: 1, quorum, tolerance, members, ..Status::default() }
    }

    fn differing(differs: Option<Difference>) -> Status {
        let voters = [("alpha", Up), ("beta", Up), ("gamma", Up)];
        let members = voters.into_iter().zip([1, 7, 9]).map(|(voter, id)| member(voter, id));
        let members = members.collect();
        Status { node: 1, quorum: 2, tolerance: 1, members, differs, ..Status::default() }
    }

    #[test]
    fn warnings_are_sentences_about_however_many() {
        for (status, words) in [
            (
                status(2, 0, &[("desk", Up), ("box", Down), ("lap", Down)]),
                "writes wait: 2 of the voters must be there, and box and lap are away; wake",
            ),
            (
                status(2, 0, &[("desk", Up), ("box", Up), ("lap", Down)]),
                "lap is away; writes stop as soon as one more is of: desk, box",
            ),
            (
                status(3, 0, &[("a", Up), ("b", Up), ("c", Up), ("d", Down), ("e", Down)]),
                "d and e are away; writes stop as soon as one more is of: a, b, c",
            ),
            (status(2, 0, &[("desk", Up), ("box", Up)]), "writes stop when desk or box is away;"),
        ] {
            let found = warnings(&status);
            assert!(found.first().is_some_and(|it| it.starts_with(words)), "{found:?}");
        }
    }

    #[test]
    fn a_removed_node_says_that_and_nothing_about_voters() {
        let mut removed = status(2, 0, &[("desk", Down), ("box", Down)]);
        removed.node = 9;
        let found = warnings(&removed);
        let [only] = found.as_slice() else { panic!("{found:?}") };
        assert!(only.starts_with("this node is no member of the cluster any more"), "{only}");
    }

    #[test]
    fn whose_state_differs_is_named_for_programs_and_people() {
        assert_eq!(shown(&differing(None), 1).differs, None);
        let odd = Difference { index: 128, majority: true, members: vec![7] };
        let view = shown(&differing(Some(odd)), 1);
        let members = vec!["beta".to_owned()];
        let expected = DifferenceView { index: 128, majority: true, members };
        assert_eq!(view.differs.as_ref(), Some(&expected));
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["differs"]["members"][0], "beta", "{json}");
        let told = |view: &ClusterView, words: &str| {
            view.warnings.iter().any(|warning| warning.contains(words))
        };
        assert!(told(&view, "the state of beta differs from that of most members at entry 128"));
        assert!(told(&view, "nexus node remove beta"), "{:?}", view.warnings);
        let split = Difference { index: 64, majority: false, members: vec![1, 9] };
        let view = shown(&differing(Some(split)), 1);
        assert!(told(&view, "the states of alpha and gamma differ at entry 64"), "{view:?}");
        assert!(!told(&view, "node remove"), "nobody is to be removed: {view:?}");
    }

    #[test]
    fn a_certificate_is_worth_a_warning_when_its_end_is_near_and_nobody_renews_it() {
        let life = |days_left, trouble: Option<&str>| CertificateLife {
            days_left,
            trouble: trouble.map(str::to_owned),
        };
        assert_eq!(certificate_warning(&life(3, None), "alpha"), None);
        assert_eq!(certificate_warning(&life(91, Some("no signer")), "alpha"), None);
        let text = certificate_warning(&life(90, Some("no signer is awake")), "alpha").unwrap();
        for words in ["alpha", "90 days", "no signer is awake", "authority.key"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
