//! What the dispatcher serves.

#[test]
fn every_listed_tool_is_served() {
    let source = include_str!("../service.rs");
    for tool in nexus_contract::catalog::all() {
        // The arm of the dispatcher names the tool's type, and the type its name.
        let mut type_name = String::new();
        for part in tool.name.split('_') {
            let mut letters = part.chars();
            type_name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            type_name.push_str(letters.as_str());
        }
        assert!(source.contains(&format!("::{type_name}::NAME =>")), "{}", tool.name);
    }
}
