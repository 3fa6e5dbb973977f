//! `nexus status`: the cluster as its leader sees it, or what is wrong when no node answers.

use std::time::Duration;

use nexus_contract::http::{
    ClusterView, DigestPoint, DigestView, MemberState, MemberView, PATH_CLUSTER, PATH_DIGEST, Role,
};
use nexus_contract::{ApiError, ErrorCode};
use tokio::time::Instant;

use super::out::{Out, knew, local_text, local_time};
use super::{Exit, Failure, Local, value};
use crate::config::Folder;

/// How long `--wait` waits for an index.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Arguments of `nexus status`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    local: Local,
    /// Show this node's digests of the state instead, to compare nodes at an index they share
    #[arg(long)]
    digest: bool,
    /// Wait, for at most a minute, until this node has applied that index
    #[arg(long, value_name = "INDEX", value_parser = value::whole, allow_negative_numbers = true)]
    wait: Option<u64>,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the status.
pub(crate) async fn run(args: StatusArgs, out: &mut Out) -> Result<Exit, Failure> {
    match show(&args, out).await {
        Err(Failure::Refused(error))
            if error.code == ErrorCode::NodeUnreachable
                && args.local.given_endpoint().is_none() =>
        {
            let text = what_is_wrong(&args.local.folder()?, &error);
            Err(ApiError::new(ErrorCode::NodeUnreachable, text).into())
        }
        other => other,
    }
}

async fn show(args: &StatusArgs, out: &mut Out) -> Result<Exit, Failure> {
    let node = args.local.node()?;
    if let Some(index) = args.wait {
        let since = Instant::now();
        loop {
            let view: DigestView = node.get(&format!("{PATH_DIGEST}?wait={index}")).await?;
            if view.now.index >= index {
                break;
            }
            if since.elapsed() >= WAIT_LIMIT {
                let text = format!(
                    "index {index} is not applied here within {} s; applied is {}",
                    WAIT_LIMIT.as_secs(),
                    view.now.index
                );
                return Err(ApiError::new(ErrorCode::NoQuorum, text).into());
            }
        }
    }
    if args.digest {
        let view: DigestView = node.get(PATH_DIGEST).await?;
        if out.is_json() {
            out.value(&view);
        } else {
            digest_table(&view, out);
        }
        return Ok(Exit::Done);
    }
    let view: ClusterView = node.get(PATH_CLUSTER).await?;
    if out.is_json() {
        out.value(&view);
    } else {
        cluster_table(&view, out);
    }
    Ok(Exit::Done)
}

fn cluster_table(view: &ClusterView, out: &mut Out) {
    let leader = view.leader.as_deref().unwrap_or("none");
    out.line(&format!(
        "cluster {}, node {}, leader {leader}, term {}, applied {}",
        view.cluster, view.node, view.term, view.applied
    ));
    out.line(&format!(
        "quorum {} of the voters; {} more may fail now before writes stop",
        view.quorum, view.tolerance
    ));
    out.line("");
    let rows = view.members.iter().map(member_row).collect();
    out.table(&["ID", "NAME", "ROLE", "STATE", "SINCE", "LAG", "VERSION", "ADDRESSES"], rows);
    if view.stale == Some(true) {
        out.warning(&format!("no leader answers: {}", knew(view.as_of.as_deref())));
    }
    for warning in &view.warnings {
        out.warning(warning);
    }
}

fn member_row(member: &MemberView) -> Vec<String> {
    let role = match member.role {
        Role::Voter => "voter",
        Role::Learner => "learner",
    };
    let state = match member.state {
        MemberState::Up => "up",
        MemberState::Asleep => "asleep",
        MemberState::Down => "down",
        MemberState::Joining => "joining",
    };
    vec![
        member.id.to_string(),
        member.name.clone(),
        role.to_owned(),
        state.to_owned(),
        member.since.as_deref().map_or("-".to_owned(), local_text),
        member.lag.map_or("-".to_owned(), |lag| lag.to_string()),
        member.version.clone(),
        member.addresses.join(" "),
    ]
}

fn digest_table(view: &DigestView, out: &mut Out) {
    let row = |kind: &str, point: &DigestPoint| {
        vec![kind.to_owned(), point.index.to_string(), point.content.clone(), point.books.clone()]
    };
    let mut rows = vec![row("now", &view.now)];
    rows.extend(view.kept.iter().rev().map(|point| row("kept", point)));
    out.table(&["", "INDEX", "CONTENT", "BOOKS"], rows);
}

/// Says why no node answers, and what to type.
fn what_is_wrong(folder: &Folder, error: &ApiError) -> String {
    let path = folder.path().display();
    if !folder.path().exists() {
        return format!("no node was started on {path} yet; start one with: nexus up");
    }
    match (folder.holder(), folder.read_endpoint()) {
        (Some(holder), Some(_)) => format!(
            "{path} is in use by {holder}, and no answer comes: {}; look at its log, or stop it \
             with: kill {}",
            error.message, holder.pid
        ),
        (Some(holder), None) => format!(
            "{path} is in use by {holder}, or waits to join; look at its log, or try again in a \
             moment"
        ),
        (None, Some(endpoint)) => format!(
            "the node of {path} is gone: it was started {} as process {} and did not stop in \
             order; its data is safe; start it with: nexus up",
            local_time(endpoint.started_at),
            endpoint.pid
        ),
        (None, None) => format!("no node runs on {path}; start it with: nexus up"),
    }
}
