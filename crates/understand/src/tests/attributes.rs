//! Variants of tags, notes and priorities next to a title, of lists by tag, and of undo.

use model::task::Priority;

use super::one;
use crate::{Intent, ParsedCommand};

fn new(text: &str, title: &str) -> ParsedCommand {
    let command = one(text);
    assert_eq!((command.intent, command.title.as_deref()), (Intent::CreateTask, Some(title)), "{text}");
    command
}

#[test]
fn tags_have_many_leads() {
    for (text, title, tags) in [
        ("add prune the roses, file it under garden", "prune the roses", vec!["garden"]),
        ("add prune the roses and put it under garden", "prune the roses", vec!["garden"]),
        ("add renew the lease, category legal", "renew the lease", vec!["legal"]),
        ("add renew the lease categorised as legal", "renew the lease", vec!["legal"]),
        ("add mend the fence, tags should be diy and weekend", "mend the fence", vec!["diy", "weekend"]),
        ("add mend the fence, use the label diy", "mend the fence", vec!["diy"]),
        ("add mend the fence. Tag it with diy and weekend.", "mend the fence", vec!["diy", "weekend"]),
        ("add a school task to sew the badge on", "sew the badge on", vec!["school"]),
        ("add ring the surveyor [house]", "ring the surveyor", vec!["house"]),
        ("#school return the atlas by friday", "return the atlas", vec!["school"]),
        ("add buy socks under shopping", "buy socks", vec!["shopping"]),
        ("add fetch the pram and put it in the car", "fetch the pram and put it in the car", vec![]),
        ("add sweep under the sofa", "sweep under the sofa", vec![]),
        ("add order name tags for the fair", "order name tags for the fair", vec![]),
    ] {
        assert_eq!(new(text, title).tags, tags, "{text}");
    }
}

#[test]
fn notes_have_many_leads() {
    for (text, title, note) in [
        ("add visit the bank, and mention that the branch shuts at 4", "visit the bank", Some("the branch shuts at 4")),
        ("add visit the bank, description should say bring the passport", "visit the bank", Some("bring the passport")),
        ("add visit the bank, add a note that parking is free", "visit the bank", Some("parking is free")),
        ("add visit the bank (bring the passport)", "visit the bank", Some("bring the passport")),
        (
            "add visit the bank and put in the notes that it's on Hill Street",
            "visit the bank",
            Some("it's on Hill Street"),
        ),
        ("add visit the bank. The note should say ask for Ivy", "visit the bank", Some("ask for Ivy")),
        ("add visit the bank, memo: ask for Ivy", "visit the bank", Some("ask for Ivy")),
        ("add write a thank you note to Ivy", "write a thank you note to Ivy", None),
        ("add read the description of the flat", "read the description of the flat", None),
        ("add rewrite the job description", "rewrite the job description", None),
    ] {
        assert_eq!(new(text, title).description.as_deref(), note, "{text}");
    }
    let both = new("add visit the bank, note: ask for Ivy, high priority", "visit the bank");
    assert_eq!((both.description.as_deref(), both.priority), (Some("ask for Ivy"), Some(Priority::High)));
}

#[test]
fn priorities_are_set_with_the_title() {
    for (text, priority) in [
        ("add sand the table, make it high priority", Priority::High),
        ("add sand the table and set the priority to low", Priority::Low),
        ("add sand the table prio=medium", Priority::Medium),
        ("add sand the table, low importance", Priority::Low),
    ] {
        assert_eq!(new(text, "sand the table").priority, Some(priority), "{text}");
    }
}

#[test]
fn lists_are_filtered_by_tag_without_the_word_tag() {
    for (text, tag) in [
        ("show the garden ones", "garden"),
        ("any overdue school stuff?", "school"),
        ("everything under legal", "legal"),
        ("what's in the pottery category", "pottery"),
        ("display the pottery-tagged tasks", "pottery"),
        ("#pottery things due today", "pottery"),
        ("list tag=pottery", "pottery"),
    ] {
        let command = one(text);
        assert_eq!((command.intent, command.filter.tags), (Intent::ListTasks, vec![tag.to_owned()]), "{text}");
    }
}

#[test]
fn undo_is_recognised_in_many_forms() {
    for text in [
        "restore the one I just removed",
        "bring back what you deleted",
        "take back my last command",
        "cancel what I just did",
        "put everything back the way it was",
        "wrong one, change it back",
        "oops my mistake, revert",
    ] {
        assert_eq!(one(text).intent, Intent::Undo, "{text}");
    }
    for text in ["cancel the last reminder", "move it back to friday", "delete what I added about taxes"] {
        assert_ne!(one(text).intent, Intent::Undo, "{text}");
    }
}
