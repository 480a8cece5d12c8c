//! Encrypts secrets that must survive a restart and must not be readable in the database: the credentials for the
//! webhooks of A2A clients.
//!
//! The key is the setting `database.sealing_key`. Without it, a shared database uses the secret of `[auth]`, which all
//! nodes have. Otherwise the key comes from a file in the data directory, and only this node has it. Text that was
//! sealed with another known key can be opened too: the secret of `[auth]`, the previous one, and the file.
//! [`Sealer::reseal`] moves it to the current key, so that a rotation of the token secret loses nothing.
//!
//! The sealed text contains the id of its key, so that a node with a different key can report
//! [`UnsealError::UnknownKey`]. The text can be opened only in the context for which it was sealed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use model::text::hex;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use secrecy::{ExposeSecret, SecretString};

/// The name of the key file in the data directory.
const KEY_FILE: &str = "seal.key";
const KEY_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 8;
/// The version of the format of sealed text.
const FORMAT_VERSION: &str = "1";

/// Seals and opens secrets with the keys of this node.
pub(crate) struct Sealer {
    /// The secret that new text is sealed with. `None`: the key file.
    current: Option<SecretString>,
    /// Further secrets that sealed text can be opened with.
    others: Vec<SecretString>,
    key_file: PathBuf,
}

/// The configured secrets that sealing keys can be derived from.
#[derive(Default)]
pub(crate) struct SealingSecrets {
    /// The setting `database.sealing_key`.
    pub(crate) sealing_key: Option<SecretString>,
    /// The current and the previous secret of `[auth]`.
    pub(crate) token_secrets: Vec<SecretString>,
    /// True if other nodes may use the same database.
    pub(crate) is_shared: bool,
}

/// The reason why sealed text cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsealError {
    /// It was sealed with a key that this node does not have.
    UnknownKey,
    /// It is damaged, or was sealed for a different context.
    Corrupt,
}

struct SealingKey {
    /// Identifies the key in sealed text.
    id: String,
    key: LessSafeKey,
}

/// The length of a key id, for HKDF.
struct KeyIdLength;

impl KeyType for KeyIdLength {
    fn len(&self) -> usize {
        KEY_ID_BYTES
    }
}

impl Sealer {
    /// Creates a sealer. New text is sealed with the sealing key. Without one, a shared database uses the first token
    /// secret, and every other case the key file in `data_dir`.
    pub(crate) fn new(secrets: SealingSecrets, data_dir: &Path) -> Self {
        let SealingSecrets { sealing_key, token_secrets, is_shared } = secrets;
        let shared = token_secrets.first().filter(|_| is_shared).cloned();
        Self { current: sealing_key.or(shared), others: token_secrets, key_file: data_dir.join(KEY_FILE) }
    }

    /// Returns `plain`, sealed for one context with the current key. The key file is created on first use. Equal texts
    /// yield different results. Fails if the key file cannot be read or created or has the wrong length, or no random
    /// numbers are available.
    pub(crate) fn seal(&self, plain: &[u8], context: &str) -> io::Result<String> {
        self.current_key()?.seal(plain, context)
    }

    /// Returns the text, sealed again with the current key. Returns `None` if it already is, or cannot be opened. Fails
    /// like [`Sealer::seal`].
    pub(crate) fn reseal(&self, sealed: &str, context: &str) -> io::Result<Option<String>> {
        let Ok(plain) = self.open(sealed, context) else { return Ok(None) };
        let current = self.current_key()?;
        match sealed.split(':').nth(1) {
            Some(id) if id == current.id => Ok(None),
            _ => current.seal(&plain, context).map(Some),
        }
    }

    fn current_key(&self) -> io::Result<SealingKey> {
        match &self.current {
            Some(secret) => SealingKey::derive(secret.expose_secret().as_bytes()),
            None => SealingKey::derive(&self.load_or_create_key()?),
        }
    }

    /// Returns the plain text that was sealed for this context. Fails with [`UnsealError::UnknownKey`] if no secret
    /// and not the key file yields the key. Fails with [`UnsealError::Corrupt`] if the text is malformed or damaged,
    /// or was sealed for another context.
    pub(crate) fn open(&self, sealed: &str, context: &str) -> Result<Vec<u8>, UnsealError> {
        let mut parts = sealed.split(':');
        let (Some(FORMAT_VERSION), Some(id), Some(content), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(UnsealError::Corrupt);
        };
        let key = self.find_key(id).ok_or(UnsealError::UnknownKey)?;
        let mut bytes = unhex(content).ok_or(UnsealError::Corrupt)?;
        let (nonce, content) = bytes.split_at_mut_checked(NONCE_LEN).ok_or(UnsealError::Corrupt)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnsealError::Corrupt)?;
        let plain =
            key.open_in_place(nonce, Aad::from(context.as_bytes()), content).map_err(|_| UnsealError::Corrupt)?;
        Ok(plain.to_vec())
    }

    /// Returns the key with this id, or `None` if no secret and not the key file yields it. The key file still counts
    /// after a secret was configured.
    fn find_key(&self, id: &str) -> Option<LessSafeKey> {
        let secrets = self.current.iter().chain(&self.others);
        let mut derived = secrets.filter_map(|secret| SealingKey::derive(secret.expose_secret().as_bytes()).ok());
        let from_file = || SealingKey::derive(&read_key(&self.key_file).ok()?).ok();
        let key = derived.find(|key| key.id == id).or_else(|| from_file().filter(|key| key.id == id))?;
        Some(key.key)
    }

    /// Returns the key of this node. Creates its file, readable only by the owner, on first use. If another process
    /// creates it at the same time, both return the same key. Fails if the file cannot be read or created, or has the
    /// wrong length.
    fn load_or_create_key(&self) -> io::Result<[u8; KEY_BYTES]> {
        match read_key(&self.key_file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        let mut key = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut key).map_err(|_| crypto_error())?;
        let new = self.key_file.with_extension(hex(&key[..4]));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let written = file.write_all(&key).and_then(|()| file.sync_all());
        // The link publishes the complete file atomically and never replaces a key that a different process created.
        let linked = written.and_then(|()| fs::hard_link(&new, &self.key_file));
        fs::remove_file(&new)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
        if let Some(dir) = self.key_file.parent() {
            fs::File::open(dir)?.sync_all()?;
        }
        read_key(&self.key_file)
    }
}

impl SealingKey {
    /// Derives the key and its id from a secret, by HKDF. Equal secrets yield equal keys and ids. Fails only if HKDF
    /// fails.
    fn derive(secret: &[u8]) -> io::Result<Self> {
        let derived = Salt::new(HKDF_SHA256, b"adjutant: seals").extract(secret);
        let key = derived.expand(&[b"key"], &CHACHA20_POLY1305).map_err(|_| crypto_error())?;
        let mut id = [0; KEY_ID_BYTES];
        derived.expand(&[b"name"], KeyIdLength).and_then(|okm| okm.fill(&mut id)).map_err(|_| crypto_error())?;
        Ok(Self { id: hex(&id), key: LessSafeKey::new(UnboundKey::from(key)) })
    }

    /// Returns `plain`, sealed for one context. Fails if no random numbers are available.
    fn seal(&self, plain: &[u8], context: &str) -> io::Result<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| crypto_error())?;
        let mut sealed = plain.to_vec();
        let aad = Aad::from(context.as_bytes());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| crypto_error())?;
        Ok(format!("{FORMAT_VERSION}:{}:{}{}", self.id, hex(&nonce), hex(&sealed)))
    }
}

/// Returns the content of the key file. Fails if it cannot be read or does not have 32 bytes.
fn read_key(file: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let wrong_length =
        |_| io::Error::other(format!("{} is not a valid key file: it must have {KEY_BYTES} bytes", file.display()));
    fs::read(file)?.try_into().map_err(wrong_length)
}

fn crypto_error() -> io::Error {
    io::Error::other("encrypting a secret failed: the system provides no random numbers")
}

/// Returns the bytes of a hexadecimal text, or `None` if it has an odd length or other characters.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if digits.len().is_multiple_of(2) { digits.chunks(2).map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn sealer(sealing_key: Option<&str>, dir: &Path) -> Sealer {
        Sealer::new(SealingSecrets { sealing_key: sealing_key.map(Into::into), ..SealingSecrets::default() }, dir)
    }

    #[test]
    fn sealed_text_survives_a_rotation_of_the_token_secret() {
        // SEC-6, A2A-1
        let dir = tempfile::tempdir().unwrap();
        let with_tokens = |sealing_key: Option<&str>, token_secrets: &[&str], is_shared| {
            let token_secrets = token_secrets.iter().map(|secret| (*secret).into()).collect();
            let secrets = SealingSecrets { sealing_key: sealing_key.map(Into::into), token_secrets, is_shared };
            Sealer::new(secrets, dir.path())
        };
        let key_of = |sealed: &str| sealed.split(':').nth(1).unwrap().to_owned();
        // Older releases sealed with the token secret.
        let old = SealingKey::derive(b"first").unwrap().seal(b"x", "p").unwrap();
        let upgraded = with_tokens(None, &["first"], false);
        let moved = upgraded.reseal(&old, "p").unwrap().unwrap();
        assert_eq!(upgraded.reseal(&moved, "p").unwrap(), None, "it has the current key already");
        assert_eq!(with_tokens(None, &["second"], false).open(&moved, "p").unwrap(), b"x");
        assert_eq!(with_tokens(None, &["second"], false).reseal(&old, "p").unwrap(), None, "the key is unknown");
        // A shared database uses the token secret until a sealing key is configured.
        let shared = with_tokens(None, &["second", "first"], true);
        let rotated = shared.reseal(&old, "p").unwrap().unwrap();
        assert_eq!(key_of(&rotated), SealingKey::derive(b"second").unwrap().id);
        let own = with_tokens(Some("own"), &["second"], true);
        let moved = own.reseal(&rotated, "p").unwrap().unwrap();
        assert_eq!(with_tokens(Some("own"), &["third"], true).open(&moved, "p").unwrap(), b"x");
    }

    #[test]
    fn nodes_with_the_same_secret_share_sealed_text() {
        // A2A-1, OPS-5
        let here = tempfile::tempdir().unwrap();
        let there = tempfile::tempdir().unwrap();
        let one = sealer(Some("s"), here.path());
        let other = sealer(Some("s"), there.path());
        let sealed = one.seal(b"hunter2", "task/1").unwrap();
        assert_eq!(other.open(&sealed, "task/1").unwrap(), b"hunter2");
        assert!(!sealed.contains("hunter2") && !sealed.contains(&hex(b"hunter2")));
        assert_ne!(one.seal(b"hunter2", "task/1").unwrap(), sealed, "equal secrets must not be recognizable");
        assert_eq!(other.open(&sealed, "task/2"), Err(UnsealError::Corrupt), "a different context");
        assert_eq!(sealer(Some("another"), here.path()).open(&sealed, "task/1"), Err(UnsealError::UnknownKey));
        assert_eq!(sealer(None, here.path()).open(&sealed, "task/1"), Err(UnsealError::UnknownKey));
        assert!(fs::read_dir(here.path()).unwrap().next().is_none(), "no key file is created");
    }

    #[test]
    fn without_a_secret_the_key_comes_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let sealed = sealer(None, dir.path()).seal(b"x", "p").unwrap();
        let file = dir.path().join(KEY_FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(sealer(None, dir.path()).open(&sealed, "p").unwrap(), b"x", "after a restart");
        assert_eq!(
            sealer(Some("since"), dir.path()).open(&sealed, "p").unwrap(),
            b"x",
            "after a secret was configured"
        );
        fs::write(&file, "short").unwrap();
        assert_eq!(sealer(None, dir.path()).open(&sealed, "p"), Err(UnsealError::UnknownKey));
        assert!(sealer(None, dir.path()).seal(b"x", "p").unwrap_err().to_string().contains("seal.key"));
        fs::remove_file(&file).unwrap();
        sealer(None, dir.path()).seal(b"x", "p").unwrap();
        assert_eq!(sealer(None, dir.path()).open(&sealed, "p"), Err(UnsealError::UnknownKey), "the key was lost");
    }

    #[test]
    fn malformed_and_changed_text_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let sealer = sealer(Some("s"), dir.path());
        let sealed = sealer.seal(b"x", "p").unwrap();
        let name = sealed.split(':').nth(1).unwrap();
        for wrong in ["", "1", "2:a:b", "1::", &format!("1:{name}:"), &format!("1:{name}:zz"), &format!("1:{name}:é0")]
        {
            assert!(sealer.open(wrong, "p").is_err(), "{wrong}");
        }
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            assert!(sealer.open(&String::from_utf8(bytes).unwrap(), "p").is_err(), "{at}");
        }
    }
}
