//! The index for searches of task texts.
//!
//! PostgreSQL maintains and uses its trigram index by itself. SQLite has a full-text table of trigrams. An update of
//! that table costs about as much as the rest of a write, so triggers only queue the changed tasks, and [`update`]
//! indexes them in batches. A search checks the tasks that the index finds, and all queued tasks. So its result is exact
//! at any time.

use serde_json::json;

use crate::conn::{Arg, Conn, args};
use crate::{Result, Store};

/// The maximum number of indexed tasks, and of queued tasks, that a search checks one by one. Beyond it, the search reads
/// the tasks of the owner in their order. It then finds a frequent text soon.
const MAX_CANDIDATES: i64 = 1000;
/// The number of tasks that one transaction indexes. Other writes run between the transactions.
const BATCH_SIZE: i64 = 500;
/// The length of the indexed parts of a text, in characters.
const TRIGRAM_LENGTH: usize = 3;
/// The number of trigrams of a text that are looked up. More of them exclude few further tasks.
const MAX_TRIGRAMS: usize = 16;

/// Returns the row ids of all tasks of all users that may contain this lower-case text, as a JSON list. Returns `None`
/// if the index cannot tell: with PostgreSQL, if the text is shorter than a trigram, or if there are too many.
pub(crate) async fn candidates(conn: &mut Conn, text: &str) -> Result<Option<String>> {
    let Some(query) = match_query(text).filter(|_| conn.is_sqlite()) else { return Ok(None) };
    // The queue first: a task that is indexed between the two queries is found by one of them.
    let queued = "SELECT task_row FROM task_index_queue LIMIT $1";
    let Some(mut rows) = row_ids(conn, (queued, args![MAX_CANDIDATES + 1])).await? else { return Ok(None) };
    let indexed = "SELECT rowid FROM task_index WHERE task_index MATCH $1 LIMIT $2";
    let Some(indexed) = row_ids(conn, (indexed, args![query, MAX_CANDIDATES + 1])).await? else { return Ok(None) };
    rows.extend(indexed);
    Ok(Some(json!(rows).to_string()))
}

/// Returns the row ids that a query selects, or `None` if there are more than [`MAX_CANDIDATES`].
async fn row_ids<const N: usize>(conn: &mut Conn, query: (&'static str, [Arg<'_>; N])) -> Result<Option<Vec<i64>>> {
    let rows = conn.all(query).await?;
    if i64::try_from(rows.len()).is_ok_and(|count| count <= MAX_CANDIDATES) {
        rows.iter().map(|row| row.int(0)).collect::<Result<_>>().map(Some)
    } else {
        Ok(None)
    }
}

/// Returns a full-text query for texts that contain the first trigrams of `text`. Returns `None` if it is shorter than a
/// trigram, or contains a character that such a query cannot contain.
fn match_query(text: &str) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() < TRIGRAM_LENGTH || characters.contains(&'\0') {
        return None;
    }
    let trigrams = characters.windows(TRIGRAM_LENGTH).take(MAX_TRIGRAMS);
    let quoted = trigrams.map(|trigram| format!("\"{}\"", trigram.iter().collect::<String>().replace('"', "\"\"")));
    Some(quoted.collect::<Vec<_>>().join(" AND "))
}

/// Indexes up to 500 queued tasks in one transaction. Returns true if more may be queued. Does nothing with PostgreSQL.
pub async fn update(store: &Store) -> Result<bool> {
    if store.is_shared() {
        return Ok(false);
    }
    // Most calls find an empty queue and need no write.
    let waiting = "SELECT 1 FROM task_index_queue LIMIT 1";
    if store.reader().await?.first((waiting, [])).await?.is_none() {
        return Ok(false);
    }
    store.transaction(async |tx| index_queued(tx).await).await
}

/// Indexes up to [`BATCH_SIZE`] queued tasks. Returns true if there were as many.
async fn index_queued(conn: &mut Conn) -> Result<bool> {
    let next = "DELETE FROM task_index_queue WHERE task_row IN \
                (SELECT task_row FROM task_index_queue ORDER BY task_row LIMIT $1) RETURNING task_row";
    let rows = conn.all((next, args![BATCH_SIZE])).await?;
    let ids = json!(rows.iter().map(|row| row.int(0)).collect::<Result<Vec<_>>>()?).to_string();
    let remove = "DELETE FROM task_index WHERE rowid IN (SELECT value FROM json_each($1))";
    conn.run((remove, args![ids.as_str()])).await?;
    let add = "INSERT INTO task_index (rowid, search) \
               SELECT rowid, search FROM tasks WHERE rowid IN (SELECT value FROM json_each($1))";
    conn.run((add, args![ids.as_str()])).await?;
    Ok(i64::try_from(rows.len()).is_ok_and(|count| count == BATCH_SIZE))
}

/// Empties the index and queues all tasks. The index keeps parts of deleted texts otherwise.
pub(crate) async fn rebuild(conn: &mut Conn) -> Result<()> {
    if conn.is_sqlite() {
        conn.run(("INSERT INTO task_index (task_index) VALUES ('delete-all')", [])).await?;
        let queue = "INSERT INTO task_index_queue (task_row) SELECT rowid FROM tasks WHERE true ON CONFLICT DO NOTHING";
        conn.run((queue, [])).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Location};

    /// Returns the number of tasks that a search would check, or `None` if it would read all.
    async fn checked(store: &Store, text: &str) -> Option<usize> {
        let rows = candidates(&mut store.reader().await.unwrap(), text).await.unwrap();
        rows.map(|rows| serde_json::from_str::<Vec<i64>>(&rows).unwrap().len())
    }

    async fn add_tasks(store: &Store, count: usize) {
        let add = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
                   INSERT INTO tasks (owner, id, title, status, priority, tags, tag_keys, title_key, search, created_at, \
                   updated_at) SELECT 'u', lower(hex(randomblob(16))), 't', 'pending', 'low', '[]', '', 't', \
                   'water plant number ' || i, i, i FROM n";
        let count = i64::try_from(count).unwrap();
        store.transaction(async move |tx| tx.run((add, args![count])).await).await.unwrap();
    }

    // TASK-1
    #[tokio::test(flavor = "multi_thread")]
    async fn an_indexed_search_checks_only_tasks_with_all_trigrams() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Location::Sqlite(dir.path().join("db")), Durability::Normal).await.unwrap();
        add_tasks(&store, 600).await;
        assert_eq!(checked(&store, "zebra").await, Some(600), "no task is indexed");
        assert!(update(&store).await.unwrap(), "more tasks than fit into one batch");
        assert_eq!(checked(&store, "zebra").await, Some(100));
        assert!(!update(&store).await.unwrap());
        assert_eq!(checked(&store, "zebra").await, Some(0));
        assert_eq!(checked(&store, "number 123").await, Some(1));
        assert_eq!(checked(&store, "er 12").await, Some(11), "12 and 120 to 129");
        assert_eq!(checked(&store, "pl").await, None, "shorter than a trigram");

        add_tasks(&store, 600).await;
        while update(&store).await.unwrap() {}
        assert_eq!(checked(&store, "plant").await, None, "too many");
    }

    // OPS-7
    #[tokio::test(flavor = "multi_thread")]
    async fn a_rebuild_forgets_deleted_texts() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Location::Sqlite(dir.path().join("db")), Durability::Normal).await.unwrap();
        add_tasks(&store, 3).await;
        update(&store).await.unwrap();
        let forget = async |tx: &mut crate::Transaction| {
            tx.run(("DELETE FROM tasks WHERE search LIKE '%3'", [])).await?;
            rebuild(tx).await
        };
        store.transaction(forget).await.unwrap();
        update(&store).await.unwrap();
        let terms = "SELECT COUNT(*) FROM task_index WHERE task_index MATCH '\"er \" AND \"r 3\"'";
        let row = store.reader().await.unwrap().first((terms, [])).await.unwrap().unwrap();
        assert_eq!(row.int(0).unwrap(), 0);
        assert_eq!(checked(&store, "number 2").await, Some(1));
    }

    // TASK-1
    #[test]
    fn a_query_contains_the_trigrams_of_the_text() {
        assert_eq!(match_query("milk").as_deref(), Some("\"mil\" AND \"ilk\""));
        assert_eq!(match_query("a\"b").as_deref(), Some("\"a\"\"b\""));
        assert_eq!(match_query("grün").as_deref(), Some("\"grü\" AND \"rün\""));
        assert_eq!(match_query(&"x".repeat(1000)).map(|query| query.matches("AND").count()), Some(15));
        assert_eq!(match_query("ab"), None);
        assert_eq!(match_query("a\0bc"), None);
    }
}
