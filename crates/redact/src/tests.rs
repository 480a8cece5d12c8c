//! Tables of texts. `‹…›` marks the parts that must be hidden; the rest must not change.
//!
//! Keys of providers are generated from the table of shapes, so that this file contains no key.

use std::borrow::Cow;

use serde_json::json;

use super::shapes::{KeyBody, KeyRule, SHAPES};
use super::{MARK, RedactOptions, Redactor, names, redact};

#[track_caller]
fn check(texts: &[&str]) {
    for marked in texts {
        let text = marked.replace(['‹', '›'], "");
        let mut expected = String::new();
        for (i, part) in marked.split(['‹', '›']).enumerate() {
            expected.push_str(if i % 2 == 0 { part } else { MARK });
        }
        assert_eq!(redact(&text), expected);
    }
}

#[test]
fn keys_are_recognized_by_shape() {
    // SUP-9
    for shape in SHAPES {
        let body = match shape.body {
            KeyBody::Upper => "Q7".repeat(shape.min_bytes / 2),
            _ => "a7".repeat(shape.min_bytes / 2 + shape.min_bytes % 2),
        };
        let (prefix, key) = match shape.rule {
            KeyRule::After => (shape.prefix, body.clone()),
            _ => ("", format!("{}{body}", shape.prefix)),
        };
        let short = format!("{}{}", shape.prefix, &body[..shape.min_bytes.min(body.len()) / 2]);
        check(&[
            &format!("{prefix}‹{key}›"),
            &format!("see {prefix}‹{key}›, or"),
            &format!("{{\"a\":\"\\n{prefix}‹{key}›\\n\"}}"),
            &format!("x=%20{prefix}‹{key}›&y=1"),
            &format!("\u{1b}[1;31m{prefix}‹{key}›\u{1b}[0m"),
            &format!("{short} is too short"),
        ]);
        if shape.prefix.as_bytes()[0].is_ascii_alphanumeric() {
            check(&[&format!("word{}{body}", shape.prefix)]);
        }
    }
    let header = "eyJ0eXAiOiJKV1QifQ";
    let payload = "eyJzdWIiOiIxMjM0In0";
    check(&[
        &format!("jwt ‹{header}.{payload}.abc-_123›."),
        &format!("unsigned ‹{header}.{payload}›."),
        "encrypted ‹eyJhbGciOiJkaXIifQ..aaaa.bbbb.cccc› end",
        &format!("{header} {header}.abc {header}."),
        "sk-toggleable__content-arrow div.sk-parallel-item task-0123456789abcdef0123 my-disk-0a1b2c3d4e5f6a7b8c9d",
        "AKIAAKIAAKIAAKIAAKIAAKIA Akia0123456789abcdef SKIRMISH 0123456789abcdef0123456789abcdef",
    ]);
}

#[test]
fn values_are_recognized_by_name() {
    // SUP-9
    check(&[
        "password: ‹hunter2›",
        "Password:‹hunter2›",
        "password=‹letmein›",
        "password = ‹letmein›\nuser = root",
        "**Password:** ‹hunter2› **API key**: ‹abc123›",
        "db_password=‹a›&x=1 dbPassword=‹b›; DB_PASS=‹c›, (passwd=‹d›) [pwd=‹e›] {secret=‹f›}",
        "OPENAI_API_KEY=‹abc› apikey: ‹abc1› x-api-key: ‹x›",
        "access-key=‹x› clientSecret=‹x› PASSWORD_2=‹x›",
        "export FOO_TOKEN=‹value› BAR=1",
        "PASSWORD='‹a \\'b c›' TOKEN=\"‹a \\\"b c›\" SECRET=`‹abc1›`",
        "api_key: str = \"‹abcd›\"; const TOKEN: &'static str = \"‹abcd›\";",
        "os.environ[\"API_KEY\"] = \"‹abcd›\"; ['password' => '‹abcd›']; token := \"‹abcd›\"",
        "token = b'‹abcd›'; secret=‹12345›",
        "tool --password ‹value› --token='‹a b›' --api-key \"‹abc›\" --secret=‹x› file",
        "AccountName=a;AccountKey=‹abc+/==›;EndpointSuffix=core",
        "aws_secret_access_key = ‹wJalrXUtnFEMI/K7MDENG/bPxRfiCY›",
        "password: ‹correct-horse-battery-staple›",
        "PASSWORD=‹pa\\ss\\\\word›",
    ]);
}

#[test]
fn harmless_values_are_not_hidden() {
    // SUP-9
    check(&[
        "the password is wrong; a token, the secret.",
        "token: a unit of text, secret: invalid, password: String, токен: единица, token: единица",
        "password= password: null password=\"\" password='' token: - secret=... pwd: ***** token=<none> secret: <a b>",
        "password=null token=None secret=TRUE api_key=env:NAME api_key=file:/run/key",
        "token=${VAR} token=$VAR token=$(cat f)",
        "token: {{ .Token }} token=%TOKEN% token=%s password='%s' Authorization: \"Basic %s\" password=[redacted]",
        "max_tokens=4096 token_count: abc1 tokens_used=abc1 tokenizer: gpt2 tokens: x1",
        "next_page_token=abc1 password_file=/a/b1",
        "token = lexer.next()? token: Option<String>, token: u32, token=Token::new()",
        "token == abc1 token::abc1 token://a1",
        "f(token=token, api_key=self.api_key, password=password)",
        "self.token = token\nnew_token = token\n",
        "\"Token: \" + x1; print(\"password:\", abc1); Self::Token => \"abc1\"",
        "PWD=/home/a1 PASSWORD= USER=bob1 TOKEN = 5; token: 17 ALLOW_EMPTY_PASSWORD=1",
        "use --token to log in or --password for it; --token --verbose; --password <value>",
        "${TOKEN:-abc1} token?: string",
        "Cookie: small file, mysql -p secret",
    ]);
}

#[test]
fn credentials_in_headers_are_hidden() {
    // SUP-9
    check(&[
        "Authorization: Bearer ‹x›\r\nAccept: */*",
        "authorization: basic ‹dXNlcjpwYXNz›",
        "Proxy-Authorization: ‹abc123›",
        "curl -H \"Authorization: token ‹abc›\" -H 'X-Api-Key: ‹x›' -H 'X-Auth-Token:‹x›'",
        "{\"Authorization\": [\"Bearer ‹x›\"], \"X-Api-Key\": \"‹x›\"}",
        "sent Bearer ‹abc.DEF-123~+/=› and bearer  ‹0a1b2c›",
        "a bearer of news, Bearer token, Bearer <token>, Bearer $TOKEN, Bearer {token}",
        "Bearer realm=\"x\", forbearer ab12cd",
        "Cookie: ‹sid=abc; theme=dark›\nSet-Cookie: ‹sid=abc; Path=/›\r\n",
    ]);
}

#[test]
fn secrets_in_json_text_are_hidden() {
    // SUP-9
    check(&[
        r#"{"password":"‹hunter2›","n":1}"#,
        r#"{"password" : "‹a\"b\\›", "token": ["‹a›", "b"], "secret": 123456, "api_key": null, "token": -5}"#,
        r#"{\"password\": \"‹a\\\"b›\", \"n\": \"x\"}"#,
        r#""{\\\"password\\\": \\\"‹a›\\\", \\\"n\\\": 1}""#,
        r#"{"log":"password=‹abc›\nuser=x","cmd":"TOKEN=\"‹a b›\" run","quoted":"TOKEN='‹abc›","it's":1}"#,
        r#"{"Enter password:":"abc","password=":"abc","list":["password=","abc","token:"],"a":"password"}"#,
        r#"["--password","‹hunter2›","--verbose"] {"a":"--password","b":"c"}"#,
        "[\n  \"--password\",\n  \"‹hunter2›\"\n] {\n  \"Authorization\": [\n    \"Bearer ‹x›\"\n  ]\n}",
        r#"{"password":{"type":"string"},"secret":["‹x1›"],"max_tokens":"5","token_count":"abc1"}"#,
        r#"{"password":"‹cut off›"#,
        "{\"password\":\"‹cut off›\n\"next\": 1",
    ]);
}

#[test]
fn urls_and_email_addresses_are_redacted() {
    // SUP-9
    check(&[
        "postgres://user:‹pass›@host:5432/db?x=1 redis://:‹pass›@host amqp://u:‹p@ss:w[o]rd›@h/v",
        "https://‹0a1b2c3d4e5f6a7b8c9d›@host/repo.git https://‹0a1b2c3d4e5f6a7b8c9d›:‹x›@host",
        r"https:\/\/user:‹pass›@host\/a",
        "https://x-access-token:‹abc›@host/ https://token=abc:‹pw›@host",
        "https://user@host.com/ ssh://git@host.com:22/a http://host:80/a@b.c1",
        "http://u:@h http://$U:$P@host.com ftp://u:${P}@h",
        "format!(\"postgres://{user}:{password}@{host}\") postgres://%s:%s@h",
        "user ‹first.last+tag@mail.example.co.uk›. <‹a@b.io›>, mailto:‹a_b@c-d.com›?x ‹me@163.com›:",
        r#"{"to":"a\n‹a@b.com›\t\"‹u@b.com›\"","x":"\u00e9‹a@b.com›"}"#,
        "‹a@b.com›,‹c@d.com› ‹a@b.com›-suffix ‹a@b.com›.1",
        "user@host @decorator @app.route name@1.2.3 a@1.0.0-rc.alpha @scope/name@2.0.1 logo@2x.png getty@tty1.service",
        "git@github.com:owner/repo git@github.com user@host.com:dir/file user@host.com:/dir",
        "x@y.transpose() this@Main.onCreate a@b.c",
        r"DOMAIN\‹user@host.com›",
        &format!("{}@b.com", "a".repeat(65)),
    ]);
}

#[test]
fn private_keys_are_hidden() {
    // SUP-9
    let begin = |kind: &str| format!("-----BEGIN {kind}-----");
    let end = |kind: &str| format!("-----END {kind}-----");
    for kind in
        ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
    {
        let begin = begin(kind);
        let end = end(kind);
        check(&[
            &format!("a\n‹{begin}\nMIIE\nvQ==\n{end}›\nb"),
            &format!("{{\"a\":\"‹{begin}\\nMIIE\\n{end}›\\n\",\"b\":1}}"),
            &format!("a ‹{begin}\nMIIE\ncut off›"),
            &format!("PRIVATE_KEY=\"‹{begin}\nMIIE\n{end}›\"\nb"),
            &format!("private_key: ‹{begin}\nMIIE\n{end}›\nb"),
            &format!("a ‹{begin}\nMIIE›\nAPI_KEY='‹x›'"),
            &format!("{{\"a\":\"‹{begin}\\nMIIE›\",\"b\":\"\\\"‹{begin}MIIE›\\\"\"}}"),
            &format!("k = \"‹{begin}\\n\" +\n  \"MIIE\\n\" +\n  \"{end}›\";"),
        ]);
    }
    check(&[
        &begin("CERTIFICATE"),
        &begin("PUBLIC KEY"),
        &format!("{} MIIE", begin("RSA PUBLIC KEY")),
        "-----BEGIN PRIVATE KEY",
    ]);
}

#[test]
fn secret_names_are_recognized() {
    // SUP-9
    let secret = "password PASSWD pwd db_password dbPassword OPENAI_API_KEY apiKey api-key secrets client_secret \
        access_token x-auth-token privateKey secretAccessKey credentials Authorization set-cookie PASSWORD_2 smtp_pass";
    assert_eq!(secret.split_whitespace().find(|name| !names::is_secret(name)), None);
    let harmless = "max_tokens token_count tokens_used tokenizer tokens nextPageToken eos_token key public_key \
        password_file secret_name api_key_id compass keyboard monkey author s 2 _ -";
    assert_eq!(harmless.split_whitespace().find(|name| names::is_secret(name)), None);
}

#[test]
fn json_values_are_redacted() {
    // AGENT-5, SUP-9
    let mut value = json!({
        "password": "a", "API_KEY": "b", "api_key": "env:KEY", "token": 5, "secret": true,
        "tokens": ["x"], "max_tokens": "5",
        "headers": {"Authorization": ["Bearer x"], "accept": "text/plain"},
        "args": ["--token", "x", "--password", "--verbose", "a@b.com", {"secret": {"name": "n"}}],
        "a@b.com": "mail a@b.com",
    });
    Redactor::new(RedactOptions::default()).json(&mut value);
    let expected = json!({
        "password": MARK, "API_KEY": MARK, "api_key": "env:KEY", "token": 5, "secret": true,
        "tokens": ["x"], "max_tokens": "5",
        "headers": {"Authorization": [MARK], "accept": "text/plain"},
        "args": ["--token", MARK, "--password", "--verbose", MARK, {"secret": {"name": "n"}}],
        "a@b.com": format!("mail {MARK}"),
    });
    assert_eq!(value, expected);
}

#[test]
fn options_select_the_kinds_to_redact() {
    // SUP-9
    let text = "password=abc https://u:p@h.com a@b.com";
    assert_eq!(
        Redactor::new(RedactOptions { secrets: true, emails: false }).text(text),
        "password=[redacted] https://u:[redacted]@h.com a@b.com"
    );
    assert_eq!(
        Redactor::new(RedactOptions { secrets: false, emails: true }).text(text),
        "password=abc https://u:p@h.com [redacted]"
    );
    let mut value = json!({"password": "abc", "args": ["--token", "x"]});
    Redactor::new(RedactOptions { secrets: false, emails: true }).json(&mut value);
    assert_eq!(value, json!({"password": "abc", "args": ["--token", "x"]}));
}

#[test]
fn known_values_are_replaced() {
    // SUP-9
    let redactor = Redactor::new(RedactOptions::default())
        .with_known(["xyzzy!".to_owned(), "a\"b\\c\nd".to_owned(), "short".to_owned()])
        .with_known(["xyzzy!plugh\n".to_owned(), "redacted".to_owned(), "nothing".to_owned()]);
    assert_eq!(redactor.text("xyzzy!plugh xyzzy! short [redacted]"), "[redacted] [redacted] short [redacted]");
    assert_eq!(redactor.text(r#"{"k":"a\"b\\c\nd","l":"\nothing"}"#), r#"{"k":"[redacted]","l":"\n[redacted]"}"#);
    assert_eq!(redactor.text("a\"b\\c\nd"), MARK);
    assert!(matches!(redactor.text("ordinary"), Cow::Borrowed("ordinary")));
}
