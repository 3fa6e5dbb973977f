//! Golden scripts of the membership planner: what is known in, the next step out.
//!
//! A script sets the scene with `cluster` and `member`, and asks `plan` or `settle`. With
//! `UPDATE_GOLDENFILES=1` the answers are written.
#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use goldenscript::{Command, Context, Runner};
use nexus_raft::Role;
use nexus_raft::membership::plan::{Member, Step, View, plan};

test_each_file::test_each_path! { in "./raft/tests/scripts/plan" => run }

fn run(path: &Path) {
    goldenscript::run(&mut Scene::default(), path).unwrap();
}

#[derive(Default)]
struct Scene {
    view: View,
}

/// What a script can say.
enum Say {
    /// `cluster leader=1 voters=1,2,3 [learners=4] [joint=1,2]`: what Raft knows.
    Cluster { leader: u64, voters: Vec<BTreeSet<u64>>, learners: BTreeSet<u64> },
    /// `member ID [wish=voter|learner] [host=NAME] [away] [steady]`: what the state records.
    Member(Member),
    /// `plan`: one step, not taken.
    Plan,
    /// `settle`: steps, taken until none is due.
    Settle,
}

impl TryFrom<&Command> for Say {
    type Error = Box<dyn Error>;

    fn try_from(command: &Command) -> Result<Self, Self::Error> {
        let mut args = command.consume_args();
        let say = match command.name.as_str() {
            "cluster" => {
                let leader = args.take_key("leader").ok_or("leader is missing")?.parse()?;
                let mut voters = vec![ids(args.take_key("voters").ok_or("voters is missing")?)?];
                if let Some(joint) = args.take_key("joint") {
                    voters.push(ids(joint)?);
                }
                let learners = args.take_key("learners").map_or(Ok(BTreeSet::new()), ids)?;
                Self::Cluster { leader, voters, learners }
            }
            "member" => {
                let id: u64 = args.next_pos().ok_or("id is missing")?.parse()?;
                let wish = match args.take_key("wish") {
                    Some("voter") => Role::Voter,
                    Some("learner") => Role::Learner,
                    None => Role::Auto,
                    Some(other) => return Err(format!("no such wish: {other}").into()),
                };
                let host = args.take_key("host").map_or(format!("host-{id}"), ToOwned::to_owned);
                let mut member = Member { id, wish, host, caught_up: true, steady: false };
                while let Some(word) = args.next_pos() {
                    match word {
                        "away" => member.caught_up = false,
                        "steady" => member.steady = true,
                        other => return Err(format!("no such word: {other}").into()),
                    }
                }
                Self::Member(member)
            }
            "plan" => Self::Plan,
            "settle" => Self::Settle,
            other => return Err(format!("no such command: {other}").into()),
        };
        args.reject_next()?;
        Ok(say)
    }
}

impl Runner for Scene {
    type Command = Say;

    fn run(&mut self, say: &Say, _context: &Context) -> Result<String, Box<dyn Error>> {
        match say {
            Say::Cluster { leader, voters, learners } => {
                self.view.leader = *leader;
                self.view.voters = voters.clone();
                self.view.learners = learners.clone();
            }
            Say::Member(member) => {
                self.view.members.retain(|known| known.id != member.id);
                self.view.members.push(member.clone());
                self.view.members.sort_by_key(|member| member.id);
            }
            Say::Plan => return Ok(format!("{}\n", show(plan(&self.view).as_ref()))),
            Say::Settle => return Ok(self.settle()),
        }
        Ok(String::new())
    }
}

impl Scene {
    /// Does what the planner says until it says nothing, at most ten steps.
    fn settle(&mut self) -> String {
        let mut output = String::new();
        for _ in 0..10 {
            let step = plan(&self.view);
            output.push_str(&show(step.as_ref()));
            output.push('\n');
            let Some(step) = step else { return output };
            self.take(step);
        }
        output.push_str("does not settle\n");
        output
    }

    fn take(&mut self, step: Step) {
        let old: BTreeSet<u64> = self.view.voters.iter().flatten().copied().collect();
        match step {
            Step::Finish(voters) | Step::SetVoters(voters) => {
                self.view.learners.extend(old.difference(&voters));
                self.view.learners.retain(|id| !voters.contains(id));
                self.view.voters = vec![voters];
            }
            Step::AddLearner(id) => {
                self.view.learners.insert(id);
            }
            Step::RemoveLearner(id) => {
                self.view.learners.remove(&id);
            }
            Step::HandOver(to) => self.view.leader = to,
        }
    }
}

fn ids(text: &str) -> Result<BTreeSet<u64>, Box<dyn Error>> {
    text.split(',').map(|id| id.parse().map_err(Into::into)).collect()
}

fn show(step: Option<&Step>) -> String {
    let set = |ids: &BTreeSet<u64>| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        ids.join(",")
    };
    match step {
        None => "nothing is due".to_owned(),
        Some(Step::Finish(voters)) => format!("finish the change to voters {}", set(voters)),
        Some(Step::AddLearner(id)) => format!("replicate to {id}"),
        Some(Step::SetVoters(voters)) => format!("voters {}", set(voters)),
        Some(Step::RemoveLearner(id)) => format!("stop replicating to {id}"),
        Some(Step::HandOver(to)) => format!("hand leadership to {to}"),
    }
}
