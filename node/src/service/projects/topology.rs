//! How projects stand to each other, in an answer of bounded length.
//!
//! There may be 5,000 projects with descriptions of 2,000 characters, and 10,000 relations. Of what
//! does not fit, descriptions go first, all alike: who is there and how they stand to each other is
//! what a topology is asked for. The answer says what is missing and where it is found.

use nexus_contract::projects::{
    GetGlobalTopologyInput, GetGlobalTopologyOutput, ProjectEdge, ProjectNode, TopologyMode,
    TopologySummary,
};
use nexus_domain::projects::{self, Edge, Summary, Surroundings, Topology};

use super::{REMEDY, manifest};
use crate::service::{Answer, Call, Service, errors, time};

/// Bytes of the projects of one answer, as far as they are texts, and as much again for relations:
/// what a client takes in one answer, and a model in one reading rather too much.
const BYTES_MAX: usize = 1024 * 1024;
/// Bytes around the texts of a project or relation: names of fields, a time.
const FRAME_BYTES: usize = 96;

/// `get_global_topology`: a read.
pub(in crate::service) async fn get_global_topology(
    service: &Service,
    about: &Call<'_>,
    input: &GetGlobalTopologyInput,
) -> Answer {
    let Some(id) = &input.project_id else {
        let fresh = service.read(|view| projects::topology(view)).await?;
        let marks = service.marks(about, &fresh);
        return marks.stamp(&listed(fresh.value));
    };
    let fresh = service.read(|view| projects::surroundings(view, id)).await?;
    let marks = service.marks(about, &fresh);
    let Some(found) = fresh.value else {
        let error = errors::not_found("projectId", &format!("project {id}"), REMEDY);
        return Err(errors::as_known_here(&marks, error));
    };
    marks.stamp(&focused(found))
}

fn listed(topology: Topology) -> GetGlobalTopologyOutput {
    let total = topology.projects.len();
    let mut notes = Vec::new();
    let nodes = nodes(topology.projects, &mut notes);
    GetGlobalTopologyOutput {
        mode: TopologyMode::List,
        summary: Some(TopologySummary {
            total_projects: crate::service::count(total),
            total_edges: topology.relations,
            dangling_edges: topology.dangling,
        }),
        projects: Some(nodes.into_iter().map(|node| (node.id.clone(), node)).collect()),
        nodes: None,
        edges: None,
        dangling: None,
        note: noted(&notes),
    }
}

fn focused(found: Surroundings) -> GetGlobalTopologyOutput {
    let mut notes = Vec::new();
    let nodes = nodes(found.projects, &mut notes);
    let total = found.edges.len().saturating_add(found.dangling.len());
    let mut room = BYTES_MAX;
    let between = edges(found.edges, &mut room);
    let dangling = edges(found.dangling, &mut room);
    let shown = between.len().saturating_add(dangling.len());
    if found.more || shown < total {
        notes.push(format!(
            "Only {shown} relations are shown, there are more: ask for a project that is nearer \
             to what you look for."
        ));
    }
    GetGlobalTopologyOutput {
        mode: TopologyMode::Focused,
        summary: None,
        projects: None,
        nodes: Some(nodes),
        edges: Some(between),
        dangling: Some(dangling),
        note: noted(&notes),
    }
}

fn noted(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// Shows projects: as many as their ids and names fit, and of the descriptions what is left.
fn nodes(projects: Vec<Summary>, notes: &mut Vec<String>) -> Vec<ProjectNode> {
    let total = projects.len();
    let mut room = BYTES_MAX;
    let fits = |project: &Summary| {
        let own = project.id.len().saturating_mul(2).saturating_add(project.name.len());
        let rest = room.checked_sub(own.saturating_add(FRAME_BYTES));
        room = rest.unwrap_or_default();
        rest.is_some()
    };
    let shown: Vec<Summary> = projects.into_iter().take_while(fits).collect();
    if shown.len() < total {
        notes.push(format!(
            "{} of {total} projects are shown: search_projects finds the others.",
            shown.len()
        ));
    }
    let most = fair(room, shown.iter().map(|project| project.description.len()));
    if let Some(most) = most {
        notes.push(format!(
            "Summaries are cut to {most} bytes: get_project returns the whole description."
        ));
    }
    shown.into_iter().map(|project| node(project, most)).collect()
}

/// Returns to how many bytes each text must be cut so that all fit; `None` when they fit whole.
fn fair(room: usize, lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    let (mut left, mut texts) = (room, lengths.len());
    for length in lengths {
        let share = left.checked_div(texts).unwrap_or_default();
        if length > share {
            // All that follow are as long or longer, so this is everybody's share.
            return Some(share);
        }
        left = left.saturating_sub(length);
        texts = texts.saturating_sub(1);
    }
    None
}

fn node(project: Summary, most: Option<usize>) -> ProjectNode {
    let mut summary = project.description;
    if let Some(most) = most {
        summary.truncate(summary.floor_char_boundary(most));
    }
    ProjectNode {
        id: project.id,
        name: project.name,
        summary,
        last_active: time::text(project.updated_at),
    }
}

fn edges(edges: Vec<Edge>, room: &mut usize) -> Vec<ProjectEdge> {
    let fits = |edge: &Edge| {
        let own = edge.from.len().saturating_add(edge.to.len()).saturating_add(FRAME_BYTES);
        let rest = room.checked_sub(own);
        *room = rest.unwrap_or_default();
        rest.is_some()
    };
    let shown = |edge: Edge| ProjectEdge {
        from: edge.from,
        to: edge.to,
        kind: manifest::shown_kind(edge.kind),
    };
    edges.into_iter().take_while(fits).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use nexus_domain::command::projects::RelationKind;

    use super::*;

    fn project(id: String, name: usize, description: String) -> Summary {
        Summary { id, name: "n".repeat(name), description, updated_at: 0 }
    }

    #[test]
    fn what_is_short_stays_whole_and_the_rest_is_cut_alike() {
        assert_eq!(fair(10, [3, 3, 4].into_iter()), None);
        assert_eq!(fair(10, [9, 1, 9].into_iter()), Some(4));
        assert_eq!(fair(9, [3, 4, 5].into_iter()), Some(3));
        assert_eq!(fair(0, [0, 0].into_iter()), None);
        assert_eq!(fair(0, [0, 1].into_iter()), Some(0));
        assert_eq!(fair(5, std::iter::empty()), None);
    }

    #[test]
    fn a_list_of_projects_has_a_bounded_length_and_says_what_is_missing() {
        let many = |count: usize, name: usize, description: &str| {
            let make = |at| project(format!("web_{at:04}"), name, description.to_owned());
            listed(Topology { projects: (0..count).map(make).collect(), relations: 7, dangling: 2 })
        };
        let whole = many(1_000, 20, &"d".repeat(200));
        assert_eq!((whole.projects.unwrap().len(), whole.note), (1_000, None));
        let cut = many(5_000, 20, &"ü".repeat(2_000));
        let note = cut.note.clone().unwrap();
        assert!(note.starts_with("Summaries are cut to ") && !note.contains("are shown"), "{note}");
        assert_eq!(cut.projects.as_ref().unwrap().len(), 5_000);
        let length = serde_json::to_string(&cut).unwrap().len();
        assert!((BYTES_MAX / 2..BYTES_MAX + 1_000).contains(&length), "{length}");
        let few = many(5_000, 800, "");
        let shown = few.projects.as_ref().unwrap().len();
        let note = few.note.clone().unwrap();
        assert!(note.starts_with(&format!("{shown} of 5000 projects are shown")), "{note}");
        assert_eq!(few.summary.unwrap().total_projects, 5_000);
        assert!(serde_json::to_string(&few).unwrap().len() < BYTES_MAX + 1_000);
    }

    #[test]
    fn relations_have_a_bounded_length_and_dangling_ones_come_last() {
        let edge = |at: usize| Edge {
            from: format!("{at:0128}"),
            to: "t".repeat(128),
            kind: RelationKind::Child,
        };
        let found = |edges: usize, dangling: usize, more: bool| {
            focused(Surroundings {
                projects: Vec::new(),
                edges: (0..edges).map(edge).collect(),
                dangling: (0..dangling).map(edge).collect(),
                more,
            })
        };
        assert_eq!(found(100, 100, false).note, None);
        let note = found(100, 0, true).note.unwrap();
        assert!(note.starts_with("Only 100 relations are shown"), "{note}");
        let cut = found(2_000, 2_000, false);
        assert_eq!(cut.edges.as_ref().unwrap().len(), 2_000);
        assert!((1..1_999).contains(&cut.dangling.as_ref().unwrap().len()));
        assert!(cut.note.is_some());
        assert!(serde_json::to_string(&cut).unwrap().len() < BYTES_MAX + 1_000);
    }
}
