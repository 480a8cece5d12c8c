//! One prompt and what comes until its answer: messages, the wish to stop, and the end of patience.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::wire::{Incoming, Wire};
use super::{Answer, End, Listener, Said};
use crate::{Clip, Failure};

/// Whether one is under way: it stays so where a prompt was dropped or never answered.
pub(super) struct Turns {
    busy: bool,
    grace: Duration,
    max_output: usize,
}

pub(super) struct Turn<'a> {
    turns: &'a mut Turns,
    deadline: Option<Instant>,
    output: Clip,
    /// Something was done since it last said something.
    gap: bool,
    /// What it said last ended with its line.
    line_ended: bool,
}

/// What happens next.
pub(super) enum Step {
    Heard(Incoming),
    /// Now the agent is to stop.
    Cancel,
    End(End),
}

impl Turns {
    pub(super) fn new(grace: Duration, max_output: u64) -> Self {
        Self { busy: false, grace, max_output: usize::try_from(max_output).unwrap_or(usize::MAX) }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Nothing where the last one has not ended.
    pub(super) fn begin(&mut self) -> Result<Turn<'_>, Answer> {
        if self.busy {
            let failure = Failure::agent("the agent is not done with what it was asked before");
            return Err(Answer { output: Clip::new(0).finish(), only_now: false, end: End::Failed(failure) });
        }
        self.busy = true;
        let output = Clip::new(self.max_output);
        Ok(Turn { turns: self, deadline: None, output, gap: false, line_ended: true })
    }
}

impl Turn<'_> {
    pub(super) fn is_cancelled(&self) -> bool {
        self.deadline.is_some()
    }

    pub(super) async fn step(
        &mut self,
        wire: &mut Wire,
        cancel: &mut Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Step {
        let deadline = self.deadline;
        tokio::select! {
            heard = wire.next() => match heard {
                Ok(Some(incoming)) => Step::Heard(incoming),
                Ok(None) if deadline.is_some() => Step::End(End::Cancelled),
                Ok(None) => {
                    Step::End(End::Failed(Failure::agent("the agent closed the connection before it had answered")))
                }
                Err(failure) => Step::End(End::Failed(failure)),
            },
            () = cancel, if deadline.is_none() => {
                self.deadline = Some(Instant::now() + self.turns.grace);
                Step::Cancel
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => Step::End(End::Cancelled),
        }
    }

    pub(super) fn say(&mut self, text: &str, on: Listener<'_>) {
        if text.is_empty() {
            return;
        }
        // What is said after something was done is another paragraph, and agents rarely begin one.
        if std::mem::take(&mut self.gap) && self.output.total() > 0 && !self.line_ended {
            self.output.push(b"\n\n");
            on(Said::Output("\n\n".to_owned()));
        }
        self.line_ended = text.ends_with('\n');
        self.output.push(text.as_bytes());
        on(Said::Output(text.to_owned()));
    }

    pub(super) fn pause(&mut self) {
        self.gap = true;
    }

    /// The agent has answered: it can be asked again.
    pub(super) fn answered(self, end: End) -> Answer {
        self.turns.busy = false;
        self.broken(end)
    }

    /// In the agent's own words in place of what it said on the way.
    pub(super) fn answered_with(mut self, text: &str) -> Answer {
        let limit = self.turns.max_output;
        self.output = Clip::new(limit);
        self.output.push(text.as_bytes());
        Answer { only_now: true, ..self.answered(End::Completed) }
    }

    pub(super) fn broken(self, end: End) -> Answer {
        Answer { output: self.output.finish(), only_now: false, end }
    }
}
