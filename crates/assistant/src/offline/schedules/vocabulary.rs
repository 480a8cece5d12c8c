//! The words of messages about schedules.

pub(super) const NOUNS: [&str; 12] = [
    "schedule",
    "schedules",
    "scheduled",
    "job",
    "jobs",
    "cron",
    "cronjob",
    "automation",
    "automations",
    "routine",
    "timer",
    "runs",
];
pub(super) const PAUSE: [&str; 7] = ["pause", "suspend", "hold", "disable", "deactivate", "freeze", "stop"];
pub(super) const RESUME: [&str; 9] =
    ["resume", "unpause", "continue", "restart", "enable", "reactivate", "activate", "unfreeze", "reenable"];
pub(super) const DELETE: [&str; 12] =
    ["delete", "remove", "cancel", "drop", "scrap", "erase", "unschedule", "kill", "bin", "ditch", "nix", "axe"];
pub(super) const RUN: [&str; 7] = ["run", "execute", "trigger", "fire", "start", "launch", "kick"];
pub(super) const CHANGE: [&str; 13] = [
    "change",
    "move",
    "make",
    "set",
    "shift",
    "reschedule",
    "switch",
    "update",
    "push",
    "bring",
    "let",
    "have",
    "adjust",
];
/// Verbs that have other meanings without the word "schedule".
pub(super) const GENERAL_VERBS: [&str; 24] = [
    "bin", "ditch", "nix", "axe", "stop", "hold", "continue", "restart", "delete", "remove", "cancel", "drop", "scrap",
    "erase", "kill", "start", "change", "move", "make", "set", "get", "put", "rename", "switch",
];
/// Words that do not help to find a schedule.
pub(super) const FILLERS: [&str; 62] = [
    "the",
    "my",
    "our",
    "a",
    "an",
    "that",
    "this",
    "these",
    "those",
    "it",
    "its",
    "them",
    "one",
    "ones",
    "please",
    "pls",
    "now",
    "right",
    "again",
    "too",
    "also",
    "as",
    "well",
    "back",
    "for",
    "while",
    "then",
    "today",
    "immediately",
    "once",
    "just",
    "out",
    "of",
    "agent",
    "run",
    "really",
    "straight",
    "away",
    "bit",
    "instead",
    "so",
    "at",
    "moment",
    "schedule",
    "schedules",
    "scheduled",
    "job",
    "jobs",
    "cron",
    "cronjob",
    "automation",
    "automations",
    "routine",
    "timer",
    "runs",
    "to",
    "next",
    "last",
    "time",
    "execution",
    "and",
    "still",
];
pub(super) const ORDINALS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
/// Words that begin a reason or a clause after a command.
pub(super) const CLAUSES: [&str; 7] = ["while", "because", "since", "until", "till", "as", "but"];
/// Words of a question that asks for the list of schedules.
pub(super) const LIST_WORDS: &str = "\
    what whats which list show is are any anything do i have how many me my the all schedules schedule scheduled \
    else there you got currently right now of your see for today tomorrow this week next tonight so active \
    agents agent jobs something up in automations still on does monday tuesday wednesday thursday friday \
    saturday sunday morning afternoon evening weekend at moment coming and tell exactly month existing besides \
    apart from that anything runs codex";
/// Words for the run of a schedule.
pub(super) const RUN_WORDS: &str = "\
    run runs running ran start starts started fire fires fired happen happened happening due go scheduled \
    trigger triggered kick execute executed begin work";
/// Words of a question that do not help to find a schedule.
pub(super) const QUESTION_WORDS: &str = "\
    why didnt did doesnt does not hasnt has wasnt was is isnt arent werent switched turned wont will when whens \
    what whats how hows have been skipped missed paused active enabled disabled on off inactive doing going \
    status state with happened come yesterday night morning evening afternoon noon week yet ever last next about \
    in time tonight tomorrow monday tuesday wednesday thursday friday saturday sunday late failed fail refused \
    exactly get set finish finished no earlier day hours";

/// Returns true if the text has this word.
pub(super) fn is_one_of(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|one| one == word)
}
