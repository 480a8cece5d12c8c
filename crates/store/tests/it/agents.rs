//! Agents that were added over the API: ids and names are unique.

use model::agent::{Agent, AgentDraft};
use store::agents::{add, all, remove, replace};
use store::{Error, Store};

use crate::{Bench, on_both, write};

on_both!(agents_are_added_replaced_and_removed, ids_and_names_are_unique, only_one_of_concurrent_renames_gets_the_name);

fn agent(id: &str, name: &str) -> Agent {
    let draft = AgentDraft {
        id: Some(id.into()),
        name: Some(name.into()),
        executable_path: Some("/bin/cat".into()),
        args: Some(vec!["{{input}}".into()]),
        ..AgentDraft::default()
    };
    draft.check().unwrap()
}

async fn ids(bench: &Bench) -> Vec<String> {
    let rows = all(&mut bench.store.reader().await.unwrap()).await.unwrap();
    rows.into_iter().map(|row| row.agent.id).collect()
}

async fn agents_are_added_replaced_and_removed(bench: Bench) {
    // SUP-1
    let one = agent("one", "One");
    let now = bench.now();
    let expected = one.clone();
    let other = agent("another", "Another");
    let row = write!(bench, tx => add(tx, &one, now)).unwrap();
    assert_eq!((&row.agent, row.created_at, row.updated_at), (&expected, now, now));
    write!(bench, tx => add(tx, &other, now)).unwrap();
    assert_eq!(ids(&bench).await, ["another", "one"]);

    bench.clock.advance(std::time::Duration::from_secs(5));
    let later = bench.now();
    let changed = Agent { description: "changed".into(), ..expected };
    let saved = changed.clone();
    let again = changed.clone();
    let row = write!(bench, tx => replace(tx, &saved, later)).unwrap();
    assert_eq!((row.created_at, row.updated_at), (now, later));
    assert_eq!(all(&mut bench.store.reader().await.unwrap()).await.unwrap()[1], row);
    assert_eq!(row.agent, again);

    write!(bench, tx => remove(tx, "one")).unwrap();
    assert!(matches!(write!(bench, tx => remove(tx, "one")), Err(Error::NotFound)));
    assert!(matches!(write!(bench, tx => replace(tx, &changed, later)), Err(Error::NotFound)));
    assert_eq!(ids(&bench).await, ["another"]);
}

async fn ids_and_names_are_unique(bench: Bench) {
    let now = bench.now();
    let one = agent("one", "Émile");
    let two = agent("two", "Two");
    write!(bench, tx => add(tx, &one, now)).unwrap();
    write!(bench, tx => add(tx, &two, now)).unwrap();
    let same_id = agent("one", "Three");
    let same_name = agent("three", "éMILE");
    let renamed = agent("two", "émile");
    // In one transaction, because a rejected change must not abort the transaction.
    let refused = bench.transaction(async move |tx| {
        let refused = [add(tx, &same_id, now).await, add(tx, &same_name, now).await, replace(tx, &renamed, now).await];
        replace(tx, &agent("two", "TWO"), now).await?;
        Ok(refused)
    });
    let fields = refused.await.unwrap().map(|refused| match refused {
        Err(Error::AlreadyExists(field)) => field,
        other => panic!("{other:?}"),
    });
    assert_eq!(fields, ["id", "name", "name"]);
    assert_eq!(ids(&bench).await, ["one", "two"]);
}

async fn only_one_of_concurrent_renames_gets_the_name(bench: Bench) {
    let now = bench.now();
    for n in 0..8 {
        let new = agent(&format!("a{n}"), &format!("A{n}"));
        write!(bench, tx => add(tx, &new, now)).unwrap();
    }
    let rename = |store: Store, n: usize| async move {
        let expected = agent(&format!("a{n}"), "shared name");
        store.transaction(async move |tx| replace(tx, &expected, now).await).await
    };
    let all = futures::future::join_all((0..8).map(|n| rename(bench.store.clone(), n))).await;
    assert_eq!(all.iter().filter(|renamed| renamed.is_ok()).count(), 1);
    assert!(
        all.iter()
            .flat_map(|renamed| renamed.as_ref().err())
            .all(|error| matches!(error, Error::AlreadyExists("name")))
    );
}
