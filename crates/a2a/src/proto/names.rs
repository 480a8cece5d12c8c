//! The names of things in 0.3: `tasks/ID` and `tasks/ID/pushNotificationConfigs/ID`, and nothing else.

use crate::Error;

const TASKS: &str = "tasks/";
const CONFIGS: &str = "/pushNotificationConfigs";

pub(super) fn of_task(id: &str) -> String {
    format!("{TASKS}{id}")
}

pub(super) fn of_config(task: &str, id: &str) -> String {
    format!("{TASKS}{task}{CONFIGS}/{id}")
}

pub(super) fn task(name: &str, field: &str) -> Result<String, Error> {
    let id = name.strip_prefix(TASKS).filter(|id| is_id(id));
    id.map(ToOwned::to_owned).ok_or_else(|| Error::invalid(field, "is not of the form tasks/ID"))
}

/// What a new configuration belongs to; the public definition and its clients disagree on how to write that.
pub(super) fn parent(name: &str, field: &str) -> Result<String, Error> {
    task(name.strip_suffix(CONFIGS).unwrap_or(name), field)
}

/// The task, and its configuration.
pub(super) fn config(name: &str, field: &str) -> Result<(String, String), Error> {
    let parts = || {
        let (task, id) = name.strip_prefix(TASKS)?.split_once('/')?;
        let id = id.strip_prefix(&CONFIGS[1..])?.strip_prefix('/')?;
        (is_id(task) && is_id(id)).then(|| (task.to_owned(), id.to_owned()))
    };
    parts().ok_or_else(|| Error::invalid(field, "is not of the form tasks/ID/pushNotificationConfigs/ID"))
}

/// Returns the task and the configuration of an answer, whose ids may have any form; that of the configuration may be
/// empty.
pub(super) fn any_config(name: &str, field: &str) -> Result<(String, String), Error> {
    let ids = name.strip_prefix(TASKS).and_then(|rest| rest.split_once(CONFIGS));
    let ids = ids.and_then(|(task, id)| Some((task.to_owned(), id.strip_prefix('/')?.to_owned())));
    ids.ok_or_else(|| Error::invalid(field, "is not of the form tasks/ID/pushNotificationConfigs/ID"))
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_exactly_one_of_two_forms() {
        // A2A-1
        assert_eq!(task(&of_task("a-1"), "name").unwrap(), "a-1");
        assert_eq!(parent("tasks/a/pushNotificationConfigs", "parent").unwrap(), "a");
        assert_eq!(config(&of_config("a", "b"), "name").unwrap(), ("a".to_owned(), "b".to_owned()));
        for name in ["", "a", "tasks", "tasks/", "tasks//", "tasks/a/", "tasks/a/b", "/tasks/a", "Tasks/a", "xtasks/a"]
        {
            assert_eq!(task(name, "name").unwrap_err().violations[0].0, "name", "{name}");
        }
        for name in [
            "",
            "tasks/a",
            "tasks/a/pushNotificationConfigs",
            "tasks/a/pushNotificationConfigs/",
            "tasks//pushNotificationConfigs/b",
            "tasks/a/pushNotificationConfigs/b/",
            "tasks/a/pushNotificationConfigs/b/c",
            "tasks/a/pushNotificationConfigsX/b",
            "tasks/a/b/pushNotificationConfigs/c",
        ] {
            config(name, "name").expect_err(name);
        }
    }
}
