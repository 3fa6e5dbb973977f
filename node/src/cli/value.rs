//! What flags take: each reader says what would be right, in words and not in types.
//!
//! What is refused here ends with the exit code of a wrong command line, before anything was asked
//! or opened.

use std::net::SocketAddr;

use nexus_contract::catalog::Set;
use nexus_contract::ids;
use nexus_contract::validate::Violation;

use crate::config;

/// Reads a whole number from 0 up.
pub(crate) fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_not_one| "give a whole number, 0 or more".to_owned())
}

/// Reads a whole number from 0 up, as a count.
pub(crate) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_not_one| "give a whole number, 0 or more".to_owned())
}

/// Reads an address to serve HTTP on.
pub(crate) fn http(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_not_one| "give ADDRESS:PORT in digits, such as 127.0.0.1:5688".to_owned())
}

/// Reads an address for the cluster's port.
pub(crate) fn cluster(text: &str) -> Result<SocketAddr, String> {
    let address = text
        .parse()
        .map_err(|_not_one| "give ADDRESS:PORT in digits, such as 192.168.1.5:5689".to_owned())?;
    config::check_cluster(address)?;
    Ok(address)
}

/// Reads a node's name.
pub(crate) fn node_name(text: &str) -> Result<String, String> {
    config::check_name(text)?;
    Ok(text.to_owned())
}

/// Reads the name of a set of tools.
pub(crate) fn tools(text: &str) -> Result<Set, String> {
    Set::named(text)
        .ok_or_else(|| format!("give one of {}", Set::EVERY.map(Set::as_str).join(", ")))
}

/// Reads the id of an instance.
pub(crate) fn some_instance(text: &str) -> Result<String, String> {
    checked(text, ids::instance)
}

/// Reads the id of a call.
pub(crate) fn request(text: &str) -> Result<String, String> {
    checked(text, ids::request)
}

/// Reads what names a member.
pub(crate) fn member(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("give a member's name or id, as `nexus status` shows it".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads a node's address; none is the same as an empty one.
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    nexus_adapter::endpoint::check(text).map_err(|error| error.to_string())?;
    Ok(text.trim().to_owned())
}

fn checked(
    id: &str,
    check: impl Fn(&str, &str) -> Result<(), Violation>,
) -> Result<String, String> {
    // The parser of the command line names the flag.
    check("", id).map_err(|violation| violation.what)?;
    Ok(id.to_owned())
}
