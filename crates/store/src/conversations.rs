//! Conversations of users and their messages.

use jiff::Timestamp;
use model::UserId;
use model::conversation::{Conversation, ConversationId, Message, MessageRole, title_from_message};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::page::{Cursor, Page};
use crate::quotas::{self, RowQuota};
use crate::tasks::contains_pattern;
use crate::{Error, Result};

const COLUMNS: &str = "id, title, created_at, updated_at, message_count";

/// Appends messages and sets the time of the last use to `now`. Creates the conversation if it does not exist. A new
/// conversation gets its title from the first message, or an empty title without messages. Returns the conversation.
/// Fails with [`Error::NotFound`] if the id belongs to another user.
pub async fn append(
    conn: &mut Conn,
    owner: UserId,
    id: &ConversationId,
    messages: &[Message],
    now: Timestamp,
) -> Result<Conversation> {
    let title = messages.first().map(|message| title_from_message(&message.content)).unwrap_or_default();
    let added = i64::try_from(messages.len()).unwrap_or_default();
    let upsert = "INSERT INTO conversations (id, owner, title, search, created_at, updated_at, message_count) \
                  VALUES ($1, $2, $3, $4, $5, $5, $6) \
                  ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, \
                  message_count = conversations.message_count + excluded.message_count \
                  WHERE conversations.owner = excluded.owner \
                  RETURNING id, title, created_at, updated_at, message_count";
    let values = args![id, owner, title.as_str(), title.to_lowercase(), now, added];
    let row = conn.first((upsert, values)).await?.ok_or(Error::NotFound)?;
    let conversation = read(&row)?;
    let first = conversation.message_count - added;
    for (seq, message) in (first..).zip(messages) {
        add_message(conn, owner, id, seq, message).await?;
    }
    Ok(conversation)
}

/// Appends a message to an existing conversation, outside of a turn. Returns false if the conversation does not exist
/// or belongs to another user.
pub async fn append_to_existing(
    conn: &mut Conn,
    owner: UserId,
    id: &ConversationId,
    message: &Message,
    now: Timestamp,
) -> Result<bool> {
    let sql = "UPDATE conversations SET updated_at = $3, message_count = message_count + 1 \
               WHERE owner = $1 AND id = $2 RETURNING message_count";
    let Some(row) = conn.first((sql, args![owner, id, now])).await? else { return Ok(false) };
    add_message(conn, owner, id, row.int(0)? - 1, message).await?;
    Ok(true)
}

/// Returns a conversation. Fails with [`Error::NotFound`] if the user has none with this id.
pub async fn get(conn: &mut Conn, owner: UserId, id: &ConversationId) -> Result<Conversation> {
    let sql = "SELECT id, title, created_at, updated_at, message_count FROM conversations WHERE owner = $1 AND id = $2";
    read(&conn.first((sql, args![owner, id])).await?.ok_or(Error::NotFound)?)
}

/// Returns the last `limit` messages of a conversation, oldest first, or none if it does not exist. Inside a PostgreSQL
/// transaction, locks the conversation until the transaction ends. Fails with [`Error::NotFound`] if the id belongs to
/// another user.
pub async fn read_history(conn: &mut Conn, owner: UserId, id: &ConversationId, limit: i64) -> Result<Vec<Message>> {
    Ok(find_history(conn, owner, id, limit).await?.unwrap_or_default())
}

/// Like [`read_history`], for a turn that creates the conversation if it does not exist. Fails with
/// [`Error::QuotaReached`] in this case if the user has too many.
pub async fn open(conn: &mut Conn, owner: UserId, id: &ConversationId, limit: i64) -> Result<Vec<Message>> {
    if let Some(history) = find_history(conn, owner, id, limit).await? {
        return Ok(history);
    }
    quotas::check_new(conn, owner, RowQuota::Conversations).await?;
    Ok(Vec::new())
}

/// Like [`open`], for a turn that has read the conversation before. `last` is the id of the last message that it read,
/// `None` if there was none. Returns `None` if that is still the last message.
pub async fn open_if_changed(
    conn: &mut Conn,
    owner: UserId,
    id: &ConversationId,
    limit: i64,
    last: Option<Uuid>,
) -> Result<Option<Vec<Message>>> {
    if !lock_existing(conn, owner, id).await? {
        quotas::check_new(conn, owner, RowQuota::Conversations).await?;
        return Ok(last.is_some().then(Vec::new));
    }
    let sql = "SELECT id FROM messages WHERE owner = $1 AND conversation_id = $2 ORDER BY seq DESC LIMIT 1";
    let row = conn.first((sql, args![owner, id])).await?;
    let newest = row.map(|row| row.parsed(0, Uuid::try_parse)).transpose()?;
    if newest == last { Ok(None) } else { last_messages(conn, owner, id, limit).await.map(Some) }
}

/// Like [`read_history`], but returns `None` if the conversation does not exist.
async fn find_history(conn: &mut Conn, owner: UserId, id: &ConversationId, limit: i64) -> Result<Option<Vec<Message>>> {
    if !lock_existing(conn, owner, id).await? {
        return Ok(None);
    }
    last_messages(conn, owner, id, limit).await.map(Some)
}

/// Returns false if the conversation does not exist. Inside a PostgreSQL transaction, locks it until the transaction
/// ends, also if it does not exist. Fails with [`Error::NotFound`] if the id belongs to another user.
async fn lock_existing(conn: &mut Conn, owner: UserId, id: &ConversationId) -> Result<bool> {
    if conn.is_postgres_transaction() {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 1))";
        conn.first((lock, args![id])).await?;
    }
    let sql = "SELECT owner FROM conversations WHERE id = $1";
    match conn.first((sql, args![id])).await? {
        None => Ok(false),
        Some(row) if row.text(0)? == owner.to_string() => Ok(true),
        Some(_) => Err(Error::NotFound),
    }
}

/// Returns the last `limit` messages of a conversation, oldest first.
async fn last_messages(conn: &mut Conn, owner: UserId, id: &ConversationId, limit: i64) -> Result<Vec<Message>> {
    let sql = "SELECT seq, id, role, content, created_at, tool_calls, pending FROM messages \
               WHERE owner = $1 AND conversation_id = $2 ORDER BY seq DESC LIMIT $3";
    let rows = conn.all((sql, args![owner, id, limit])).await?;
    rows.iter().rev().map(|row| read_message(row).map(|(_, message)| message)).collect()
}

/// Returns one page of conversations, the most recently used first. With `text`, only those that contain it in the
/// title or a message, ignoring case.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    text: Option<&str>,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Conversation>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM conversations c WHERE owner = ").bind(owner);
    if let Some(text) = text {
        let pattern = contains_pattern(&text.to_lowercase());
        select
            .push(" AND (search LIKE ")
            .bind(pattern.clone())
            .push(" ESCAPE '\\' OR EXISTS (SELECT 1 FROM messages m ");
        select.push("WHERE m.owner = c.owner AND m.conversation_id = c.id AND m.search LIKE ").bind(pattern);
        select.push(" ESCAPE '\\'))");
    }
    if let Some(cursor) = after {
        select.push(" AND (updated_at, id) < (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY updated_at DESC, id DESC LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?;
    let conversations = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(conversations, limit, |c| Cursor { sort: c.updated_at.as_microsecond(), id: c.id.to_string() }))
}

/// Returns one page of messages in the order in which they were appended. Empty if the user has no such conversation.
pub async fn messages(
    conn: &mut Conn,
    owner: UserId,
    id: &ConversationId,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Message>> {
    let sql = "SELECT seq, id, role, content, created_at, tool_calls, pending FROM messages \
               WHERE owner = $1 AND conversation_id = $2 AND seq > $3 ORDER BY seq LIMIT $4";
    let from = after.map_or(-1, |cursor| cursor.sort);
    let rows = conn.all((sql, args![owner, id, from, limit + 1])).await?;
    let messages = rows.iter().map(read_message).collect::<Result<Vec<_>>>()?;
    let page = Page::from_rows(messages, limit, |(seq, message)| Cursor { sort: *seq, id: message.id.to_string() });
    Ok(Page { rows: page.rows.into_iter().map(|(_, message)| message).collect(), next: page.next })
}

/// Deletes a conversation and its messages. Fails with [`Error::NotFound`] if it does not exist.
pub async fn delete(conn: &mut Conn, owner: UserId, id: &ConversationId) -> Result<()> {
    let sql = "DELETE FROM conversations WHERE owner = $1 AND id = $2";
    if conn.run((sql, args![owner, id])).await? == 0 {
        return Err(Error::NotFound);
    }
    let sql = "DELETE FROM messages WHERE owner = $1 AND conversation_id = $2";
    conn.run((sql, args![owner, id])).await.map(drop)
}

/// Adds a conversation with its messages and original times. Its message count is that of `messages`. Returns false and
/// adds nothing if any user has a conversation with this id.
pub(crate) async fn add_if_new(
    conn: &mut Conn,
    owner: UserId,
    conversation: &Conversation,
    messages: &[Message],
) -> Result<bool> {
    let Conversation { id, title, created_at, updated_at, .. } = conversation;
    let count = i64::try_from(messages.len()).unwrap_or_default();
    let insert = "INSERT INTO conversations (id, owner, title, search, created_at, updated_at, message_count) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
    let values = args![id, owner, title.as_str(), title.to_lowercase(), *created_at, *updated_at, count];
    if conn.run((insert, values)).await? == 0 {
        return Ok(false);
    }
    for (seq, message) in (0..).zip(messages) {
        add_message(conn, owner, id, seq, message).await?;
    }
    Ok(true)
}

/// Inserts one message with the number `seq`. Does not change the message count of the conversation. Fails with
/// [`Error::Corrupt`] if its tool calls or held calls cannot be encoded, and with [`Error::Database`] if the number is
/// in use.
async fn add_message(conn: &mut Conn, owner: UserId, id: &ConversationId, seq: i64, message: &Message) -> Result<()> {
    let json = |value: serde_json::Result<String>| value.map_err(|error| Error::Corrupt(error.to_string()));
    let tool_calls = json(serde_json::to_string(&message.tool_calls))?;
    let pending = message.pending.as_ref().map(serde_json::to_string).map(json).transpose()?;
    let insert = "INSERT INTO messages (owner, conversation_id, seq, id, role, content, search, tool_calls, pending, \
                  created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let values = args![
        owner,
        id,
        seq,
        message.id,
        message.role.as_str(),
        message.content.as_str(),
        message.content.to_lowercase(),
        tool_calls,
        pending,
        message.timestamp,
    ];
    conn.run((insert, values)).await.map(drop)
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<Conversation> {
    Ok(Conversation {
        id: row.parsed(0, str::parse)?,
        title: row.text(1)?,
        created_at: row.time(2)?,
        updated_at: row.time(3)?,
        message_count: row.int(4)?,
    })
}

/// Reads a message with its number. Fails with [`Error::Corrupt`] if a column is invalid.
fn read_message(row: &DbRow) -> Result<(i64, Message)> {
    let pending = row.maybe_text(6)?.map(|json| serde_json::from_str(&json)).transpose();
    let message = Message {
        id: row.parsed(1, Uuid::try_parse)?,
        role: row.parsed(2, |word| MessageRole::parse("role", word))?,
        content: row.text(3)?,
        timestamp: row.time(4)?,
        tool_calls: row.parsed(5, |json| serde_json::from_str(json))?,
        pending: pending.map_err(|error| Error::Corrupt(error.to_string()))?,
    };
    Ok((row.int(0)?, message))
}
