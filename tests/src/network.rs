//! A LAN in network namespaces: hosts on one switch, whose cables can be pulled, some of them with
//! a network of containers that nobody else may hear of.
//!
//! Needs root and `ip`. Everything goes with the value.

use std::process::Command;

/// A switch in a namespace of its own, and the hosts that are plugged in.
#[derive(Debug)]
pub struct Network {
    name: String,
    hosts: Vec<String>,
}

impl Network {
    /// Makes the switch; the letter tells switches of one process apart.
    ///
    /// # Errors
    /// What this machine lacks for it.
    pub fn new(letter: char) -> Result<Self, String> {
        let name = format!("nx{letter}{}", std::process::id());
        ip(&format!("netns add {name}"))?;
        let network = Self { name, hosts: Vec::new() };
        network.inside("link add br0 type bridge")?;
        network.inside("link set br0 up")?;
        Ok(network)
    }

    fn inside(&self, arguments: &str) -> Result<(), String> {
        ip(&format!("-n {} {arguments}", self.name))
    }

    /// Plugs a host in, with the address 10.78.0.NUMBER; returns its namespace.
    ///
    /// # Errors
    /// What this machine lacks for it.
    pub fn host(&mut self, number: u8) -> Result<String, String> {
        let host = self.bare_host(number)?;
        ip(&format!("-n {host} addr add 10.78.0.{number}/24 dev eth0"))?;
        Ok(host)
    }

    /// Plugs a host in as [`Network::host`] does, with a bridge of containers beside its real
    /// interface: every such host has the same address there.
    ///
    /// # Errors
    /// What this machine lacks for it.
    pub fn host_of_containers(&mut self, number: u8) -> Result<String, String> {
        let host = self.host(number)?;
        let inside = |arguments: &str| ip(&format!("-n {host} {arguments}"));
        inside(&format!("link add docker0 type veth peer name hidden netns {}", self.name))?;
        inside("addr add 172.18.0.1/16 dev docker0")?;
        inside("link set docker0 up")?;
        self.inside(&format!("link set hidden name h{number} up"))?;
        Ok(host)
    }

    /// Plugs a host in that has no address but the link-local one of IPv6.
    ///
    /// # Errors
    /// What this machine lacks for it.
    pub fn bare_host(&mut self, number: u8) -> Result<String, String> {
        let host = format!("{}h{number}", self.name);
        ip(&format!("netns add {host}"))?;
        self.hosts.push(host.clone());
        let inside = |arguments: &str| ip(&format!("-n {host} {arguments}"));
        self.inside(&format!("link add p{number} type veth peer name eth0 netns {host}"))?;
        self.inside(&format!("link set p{number} master br0 up"))?;
        inside("link set lo up")?;
        inside("link set eth0 up")?;
        Ok(host)
    }

    /// Pulls a host's cable.
    ///
    /// # Panics
    /// When the switch does not let go of it.
    pub fn cut(&self, number: u8) {
        self.inside(&format!("link set p{number} down")).expect("a port can be set down");
    }

    /// Lets two hosts not hear each other, while both hear all the others.
    ///
    /// # Panics
    /// When the switch does not do so.
    pub fn part(&self, one: u8, other: u8) {
        self.isolate([one, other], "on");
    }

    /// Lets them hear each other again.
    ///
    /// # Panics
    /// When the switch does not do so.
    pub fn rejoin(&self, one: u8, other: u8) {
        self.isolate([one, other], "off");
    }

    /// Isolated ports hear all but one another.
    fn isolate(&self, ports: [u8; 2], word: &str) {
        for number in ports {
            let set = self.inside(&format!("link set p{number} type bridge_slave isolated {word}"));
            set.expect("a port can be isolated");
        }
    }

    /// Plugs it in again.
    ///
    /// # Panics
    /// When the switch does not take it.
    pub fn mend(&self, number: u8) {
        self.inside(&format!("link set p{number} up")).expect("a port can be set up");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.hosts.iter().chain([&self.name]) {
            // A failed deletion leaves a namespace behind, which harms nobody.
            ip(&format!("netns del {name}")).ok();
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .map_err(|error| format!("ip cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {arguments}: {}", said.trim()))
}
