//! Quotas: limits of one user, so that one user cannot use up shared resources (SEC-5).

use std::fmt;

/// The limits of each user. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quotas {
    /// Stored tasks.
    pub tasks: Option<i64>,
    /// Scheduled reminders.
    pub reminders: Option<i64>,
    /// Scheduled reminders of one task.
    pub reminders_per_task: Option<i64>,
    /// Schedules, except those of the configuration file.
    pub schedules: Option<i64>,
    /// Stored conversations.
    pub conversations: Option<i64>,
    /// Executions that were created in the last 24 hours.
    pub runs_per_day: Option<i64>,
    /// The share of the queue of an agent, and of its slots for sessions. Greater than 0 and at most 1.
    pub queue_share: Option<f64>,
    /// Open sessions with all agents.
    pub sessions: Option<i64>,
    /// Open event streams of one node.
    pub streams: Option<i64>,
    /// Open event streams of all users of one node.
    pub total_streams: Option<i64>,
    /// Notifications that one channel delivers per minute. Further ones are delayed.
    pub deliveries_per_minute: Option<i64>,
}

impl Default for Quotas {
    /// Returns the documented defaults.
    fn default() -> Self {
        Self {
            tasks: Some(100_000),
            reminders: Some(10_000),
            reminders_per_task: Some(100),
            schedules: Some(1_000),
            conversations: Some(100_000),
            runs_per_day: None,
            queue_share: Some(0.5),
            sessions: Some(50),
            streams: Some(100),
            total_streams: Some(2_000),
            deliveries_per_minute: Some(60),
        }
    }
}

impl Quotas {
    /// No limits at all.
    pub const UNLIMITED: Self = Self {
        tasks: None,
        reminders: None,
        reminders_per_task: None,
        schedules: None,
        conversations: None,
        runs_per_day: None,
        queue_share: None,
        sessions: None,
        streams: None,
        total_streams: None,
        deliveries_per_minute: None,
    };

    /// Returns the part of `whole` that one user may have, rounded up. Returns `whole` without a share.
    pub fn share_of(&self, whole: i64) -> i64 {
        match self.queue_share {
            // Exact below 2^53, and a queue is much shorter.
            Some(share) => ((whole as f64 * share).ceil() as i64).clamp(0, whole),
            None => whole,
        }
    }
}

/// The kind of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    Tasks,
    Reminders,
    RemindersPerTask,
    Schedules,
    Conversations,
    RunsPerDay,
    /// The share of the queue of one agent.
    QueueShare,
    /// The share of the slots of one agent that sessions may hold.
    SessionShare,
    Sessions,
    Streams,
    /// The streams of all users.
    TotalStreams,
}

impl QuotaKind {
    /// Returns the setting of the quota.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Tasks => "quotas.tasks",
            Self::Reminders => "quotas.reminders",
            Self::RemindersPerTask => "quotas.reminders_per_task",
            Self::Schedules => "quotas.schedules",
            Self::Conversations => "quotas.conversations",
            Self::RunsPerDay => "quotas.runs_per_day",
            Self::QueueShare | Self::SessionShare => "quotas.queue_share",
            Self::Sessions => "quotas.sessions",
            Self::Streams => "quotas.streams",
            Self::TotalStreams => "quotas.total_streams",
        }
    }

    /// Returns the limited objects, in the plural.
    fn objects(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Reminders => "scheduled reminders",
            Self::RemindersPerTask => "scheduled reminders for one task",
            Self::Schedules => "schedules",
            Self::Conversations => "conversations",
            Self::RunsPerDay => "runs in 24 hours",
            Self::QueueShare => "runs that wait for this agent",
            Self::SessionShare => "open sessions with this agent",
            Self::Sessions => "open sessions",
            Self::Streams => "open event streams",
            Self::TotalStreams => "open event streams of all users",
        }
    }

    /// Returns the next step of the user.
    fn next_step(self) -> &'static str {
        match self {
            Self::Tasks | Self::Reminders | Self::RemindersPerTask | Self::Schedules | Self::Conversations => {
                "delete some"
            }
            Self::RunsPerDay => "wait",
            Self::QueueShare => "wait until one of them has ended",
            Self::SessionShare | Self::Sessions | Self::Streams => "close one of them",
            Self::TotalStreams => "try again later",
        }
    }

    /// Returns the party that has reached the limit.
    fn party(self) -> &'static str {
        if self == Self::TotalStreams { "the server has" } else { "you have" }
    }
}

/// A quota that refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaReached {
    pub kind: QuotaKind,
    /// The limit of the user, as a number of objects.
    pub limit: i64,
    /// The time after which a retry may succeed, in seconds. `None` if waiting does not help.
    pub retry_after: Option<u64>,
}

impl QuotaReached {
    /// Returns the refusal of a request that waiting does not help.
    pub fn new(kind: QuotaKind, limit: i64) -> Self {
        Self { kind, limit, retry_after: None }
    }

    /// Returns a sentence for users, without the name of the setting.
    pub fn sentence(&self) -> String {
        let Self { kind, limit, .. } = self;
        let mut party = kind.party().to_owned();
        party[..1].make_ascii_uppercase();
        let mut next = kind.next_step().to_owned();
        next[..1].make_ascii_uppercase();
        let again = if *kind == QuotaKind::TotalStreams { "" } else { ", then try again" };
        format!("{party} reached the limit of {limit} {}. {next}{again}.", kind.objects())
    }
}

impl fmt::Display for QuotaReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, limit, .. } = self;
        let objects = kind.objects();
        let setting = kind.setting();
        write!(
            f,
            "{} reached the limit of {limit} {objects} ({setting}); {} or raise the limit",
            kind.party(),
            kind.next_step()
        )
    }
}

impl std::error::Error for QuotaReached {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_quota_its_value_and_the_next_step() {
        // SEC-5
        let reached = QuotaReached::new(QuotaKind::Tasks, 100_000);
        let detail = "you have reached the limit of 100000 tasks (quotas.tasks); delete some or raise the limit";
        assert_eq!(reached.to_string(), detail);
        let sentence = "You have reached the limit of 100000 tasks. Delete some, then try again.";
        assert_eq!(reached.sentence(), sentence);
        let total = QuotaReached::new(QuotaKind::TotalStreams, 2);
        assert_eq!(
            total.sentence(),
            "The server has reached the limit of 2 open event streams of all users. Try again later."
        );
    }

    #[test]
    fn a_share_is_rounded_up() {
        // SEC-5
        let quotas = Quotas { queue_share: Some(0.5), ..Quotas::UNLIMITED };
        assert_eq!([0, 1, 2, 5, 10].map(|whole| quotas.share_of(whole)), [0, 1, 1, 3, 5]);
        assert_eq!(Quotas::UNLIMITED.share_of(10), 10);
    }
}
