//! Agents that were added over the API: one id, one name, whoever writes them.

use model::agent::{Agent, Draft};
use store::agents::{add, all, remove, replace};
use store::{Error, Store};

use crate::{Bench, on_both, write};

on_both!(written_and_read, names_are_unique, two_who_want_one_name);

fn agent(id: &str, name: &str) -> Agent {
    let draft = Draft {
        id: Some(id.into()),
        name: Some(name.into()),
        executable_path: Some("/bin/cat".into()),
        args: Some(vec!["{{input}}".into()]),
        ..Draft::default()
    };
    draft.check().unwrap()
}

async fn ids(bench: &Bench) -> Vec<String> {
    let kept = all(&mut bench.store.reader().await.unwrap()).await.unwrap();
    kept.into_iter().map(|kept| kept.agent.id).collect()
}

async fn written_and_read(bench: Bench) {
    // SUP-1
    let one = agent("one", "One");
    let now = bench.now();
    let wanted = one.clone();
    let other = agent("another", "Another");
    let kept = write!(bench, tx => add(tx, &one, now)).unwrap();
    assert_eq!((&kept.agent, kept.created_at, kept.updated_at), (&wanted, now, now));
    write!(bench, tx => add(tx, &other, now)).unwrap();
    assert_eq!(ids(&bench).await, ["another", "one"]);

    bench.clock.advance(std::time::Duration::from_secs(5));
    let later = bench.now();
    let changed = Agent { description: "changed".into(), ..wanted };
    let saved = changed.clone();
    let again = changed.clone();
    let kept = write!(bench, tx => replace(tx, &saved, later)).unwrap();
    assert_eq!((kept.created_at, kept.updated_at), (now, later));
    assert_eq!(all(&mut bench.store.reader().await.unwrap()).await.unwrap()[1], kept);
    assert_eq!(kept.agent, again);

    write!(bench, tx => remove(tx, "one")).unwrap();
    assert!(matches!(write!(bench, tx => remove(tx, "one")), Err(Error::NotFound)));
    assert!(matches!(write!(bench, tx => replace(tx, &changed, later)), Err(Error::NotFound)));
    assert_eq!(ids(&bench).await, ["another"]);
}

async fn names_are_unique(bench: Bench) {
    let now = bench.now();
    let one = agent("one", "Émile");
    let two = agent("two", "Two");
    write!(bench, tx => add(tx, &one, now)).unwrap();
    write!(bench, tx => add(tx, &two, now)).unwrap();
    let same_id = agent("one", "Three");
    let same_name = agent("three", "éMILE");
    let renamed = agent("two", "émile");
    // In one transaction: what is refused does not spoil what follows.
    let refused = bench.transaction(async move |tx| {
        let refused = [add(tx, &same_id, now).await, add(tx, &same_name, now).await, replace(tx, &renamed, now).await];
        replace(tx, &agent("two", "TWO"), now).await?;
        Ok(refused)
    });
    let fields = refused.await.unwrap().map(|refused| match refused {
        Err(Error::Taken(field)) => field,
        other => panic!("{other:?}"),
    });
    assert_eq!(fields, ["id", "name", "name"]);
    assert_eq!(ids(&bench).await, ["one", "two"]);
}

async fn two_who_want_one_name(bench: Bench) {
    let now = bench.now();
    for n in 0..8 {
        let new = agent(&format!("a{n}"), &format!("A{n}"));
        write!(bench, tx => add(tx, &new, now)).unwrap();
    }
    let rename = |store: Store, n: usize| async move {
        let wanted = agent(&format!("a{n}"), "wanted");
        store.transaction(async move |tx| replace(tx, &wanted, now).await).await
    };
    let all = futures::future::join_all((0..8).map(|n| rename(bench.store.clone(), n))).await;
    assert_eq!(all.iter().filter(|renamed| renamed.is_ok()).count(), 1);
    assert!(all.iter().flat_map(|renamed| renamed.as_ref().err()).all(|error| matches!(error, Error::Taken("name"))));
}
