//! Manifests as callers write them, and as the log has them.

use nexus_contract::projects as ours;
use nexus_domain::command::projects as theirs;

/// Returns a manifest for the log.
pub(super) fn into_command(given: ours::Manifest) -> theirs::Manifest {
    theirs::Manifest {
        id: given.id,
        name: given.name,
        description: given.description,
        tech_stack: given.tech_stack,
        relations: all(given.relations, into_relation),
        repository_url: given.repository_url,
        local_path: given.local_path,
        endpoints: all(given.endpoints, into_endpoint),
        api_spec: all(given.api_spec, into_operation),
        billing: given.billing.map(into_billing),
        last_updated: given.last_updated,
        api_dependencies: given.api_dependencies,
        gateway_compatibility: given.gateway_compatibility,
        api_versions: given.api_versions,
        feature_tier: into_tier(given.feature_tier),
    }
}

/// Returns the fields that shall change for the log.
pub(super) fn into_patch(given: ours::ManifestPatch) -> theirs::Patch {
    theirs::Patch {
        name: given.name,
        description: given.description,
        tech_stack: given.tech_stack,
        relations: given.relations.map(|list| all(list, into_relation)),
        repository_url: given.repository_url,
        local_path: given.local_path,
        endpoints: given.endpoints.map(|list| all(list, into_endpoint)),
        api_spec: given.api_spec.map(|list| all(list, into_operation)),
        billing: given.billing.map(into_billing),
        last_updated: given.last_updated,
        api_dependencies: given.api_dependencies,
        gateway_compatibility: given.gateway_compatibility,
        api_versions: given.api_versions,
        feature_tier: into_tier(given.feature_tier),
    }
}

/// Shows a manifest.
pub(super) fn shown(kept: theirs::Manifest) -> ours::Manifest {
    ours::Manifest {
        id: kept.id,
        name: kept.name,
        description: kept.description,
        tech_stack: kept.tech_stack,
        relations: all(kept.relations, |relation| ours::Relation {
            target_id: relation.target,
            kind: shown_kind(relation.kind),
        }),
        repository_url: kept.repository_url,
        local_path: kept.local_path,
        endpoints: all(kept.endpoints, |theirs::Endpoint { name, url, description }| {
            ours::Endpoint { name, url, description }
        }),
        api_spec: all(kept.api_spec, |theirs::Operation { method, path, summary }| {
            ours::Operation { method, path, summary }
        }),
        billing: kept
            .billing
            .map(|theirs::Billing { plain, price }| ours::Billing { plain, price }),
        last_updated: kept.last_updated,
        api_dependencies: kept.api_dependencies,
        gateway_compatibility: kept.gateway_compatibility,
        api_versions: kept.api_versions,
        feature_tier: match kept.feature_tier {
            theirs::FeatureTier::Unsaid => None,
            theirs::FeatureTier::Standard => Some(ours::FeatureTier::Standard),
            theirs::FeatureTier::Advanced => Some(ours::FeatureTier::Advanced),
            theirs::FeatureTier::Team => Some(ours::FeatureTier::Team),
        },
    }
}

/// Shows what another project is to one.
pub(super) fn shown_kind(kind: theirs::RelationKind) -> ours::RelationKind {
    match kind {
        theirs::RelationKind::Dependency => ours::RelationKind::Dependency,
        theirs::RelationKind::Parent => ours::RelationKind::Parent,
        theirs::RelationKind::Child => ours::RelationKind::Child,
        theirs::RelationKind::Related => ours::RelationKind::Related,
    }
}

fn all<T, U>(list: Vec<T>, turn: impl FnMut(T) -> U) -> Vec<U> {
    list.into_iter().map(turn).collect()
}

fn into_relation(given: ours::Relation) -> theirs::Relation {
    let kind = match given.kind {
        ours::RelationKind::Dependency => theirs::RelationKind::Dependency,
        ours::RelationKind::Parent => theirs::RelationKind::Parent,
        ours::RelationKind::Child => theirs::RelationKind::Child,
        ours::RelationKind::Related => theirs::RelationKind::Related,
    };
    theirs::Relation { target: given.target_id, kind }
}

fn into_endpoint(given: ours::Endpoint) -> theirs::Endpoint {
    let ours::Endpoint { name, url, description } = given;
    theirs::Endpoint { name, url, description }
}

fn into_operation(given: ours::Operation) -> theirs::Operation {
    let ours::Operation { method, path, summary } = given;
    theirs::Operation { method, path, summary }
}

fn into_billing(given: ours::Billing) -> theirs::Billing {
    let ours::Billing { plain, price } = given;
    theirs::Billing { plain, price }
}

fn into_tier(given: Option<ours::FeatureTier>) -> theirs::FeatureTier {
    match given {
        None => theirs::FeatureTier::Unsaid,
        Some(ours::FeatureTier::Standard) => theirs::FeatureTier::Standard,
        Some(ours::FeatureTier::Advanced) => theirs::FeatureTier::Advanced,
        Some(ours::FeatureTier::Team) => theirs::FeatureTier::Team,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_comes_back_as_it_was_given() {
        let mut whole = nexus_contract::testing::manifest();
        let again = |given: &serde_json::Value| {
            let given: ours::Manifest = serde_json::from_value(given.clone()).unwrap();
            serde_json::to_value(shown(into_command(given))).unwrap()
        };
        assert_eq!(again(&whole), whole);
        for kind in ["dependency", "parent", "child", "related"] {
            whole["relations"] = json!([{"targetId": "lib_money", "type": kind}]);
            assert_eq!(again(&whole), whole);
        }
        for tier in ["standard", "advanced", "team"] {
            whole["feature_tier"] = tier.into();
            assert_eq!(again(&whole), whole);
        }
        // What may be left out stays out; a list or a map that is empty stays, and is empty.
        for field in ["billing", "lastUpdated", "gatewayCompatibility", "feature_tier"] {
            whole.as_object_mut().unwrap().remove(field);
        }
        whole["apiDependencies"] = json!({});
        whole["api_versions"] = json!({});
        assert_eq!(again(&whole), whole);
        for field in ["apiDependencies", "api_versions"] {
            whole.as_object_mut().unwrap().remove(field);
        }
        assert_eq!(again(&whole), whole);
    }

    #[test]
    fn a_patch_says_of_each_field_what_a_manifest_says() {
        let whole = nexus_contract::testing::manifest();
        let manifest: ours::Manifest = serde_json::from_value(whole.clone()).unwrap();
        let manifest = into_command(manifest);
        let mut fields = whole.as_object().unwrap().clone();
        fields.remove("id");
        let patch = |fields: &serde_json::Map<_, _>| {
            into_patch(serde_json::from_value(fields.clone().into()).unwrap())
        };
        let expected = theirs::Patch {
            name: Some(manifest.name),
            description: Some(manifest.description),
            tech_stack: Some(manifest.tech_stack),
            relations: Some(manifest.relations),
            repository_url: Some(manifest.repository_url),
            local_path: Some(manifest.local_path),
            endpoints: Some(manifest.endpoints),
            api_spec: Some(manifest.api_spec),
            billing: manifest.billing,
            last_updated: manifest.last_updated,
            api_dependencies: manifest.api_dependencies,
            gateway_compatibility: manifest.gateway_compatibility,
            api_versions: manifest.api_versions,
            feature_tier: manifest.feature_tier,
        };
        assert_eq!(patch(&fields), expected);
        assert_eq!(patch(&serde_json::Map::new()), theirs::Patch::default());
    }
}
