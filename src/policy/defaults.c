/* SPDX-License-Identifier: MIT */
/* The default masks and environment filters. */
#include "policy/defaults.h"

#include <stddef.h>

/* clang-format off */

/* One of the masks. */
#define MASK(path) path "\0"
/* A file whose name begins with a dot, and what editors leave of it; and one that does not. */
#define WITH_BACKUPS(path)                                                                         \
    MASK(path) MASK(path "~") MASK(path ".bak") MASK(path ".orig") MASK(path ".sw?")
#define WITH_BACKUPS_IN(directory, name)                                                           \
    MASK(directory "/" name) MASK(directory "/" name "~") MASK(directory "/" name ".bak")          \
    MASK(directory "/" name ".orig") MASK(directory "/." name ".sw?")
#define SNAPSHOTS_IN(directory) MASK(directory "/.snapshot") MASK(directory "/.snap")

const char policy_default_masks[] =
    /* This program's own, and its predecessor's: they say what is hidden, and run outside. */
    MASK(".config/brig")
    MASK(".local/share/brig")
    MASK(".jai")
    /* Where filesystems show older copies of everything: ZFS, NetApp, snapper, CephFS. NetApp and
     * CephFS do so in every directory, of which those with many masks are named. */
    MASK(".zfs")
    MASK(".snapshot")
    MASK(".snapshots")
    MASK(".snap")
    SNAPSHOTS_IN(".cache")
    SNAPSHOTS_IN(".config")
    SNAPSHOTS_IN(".local")
    SNAPSHOTS_IN(".local/share")
    SNAPSHOTS_IN(".local/state")
    SNAPSHOTS_IN(".var")
    SNAPSHOTS_IN(".var/app")
    SNAPSHOTS_IN("snap")
    /* Keys and key rings. */
    MASK(".ssh")
    MASK(".gnupg")
    MASK(".pki")
    MASK(".putty")
    MASK(".age")
    MASK(".config/age")
    MASK(".config/sops")
    MASK(".local/share/keyrings")
    MASK(".local/share/kwalletd")
    MASK(".gnome2/keyrings")
    MASK(".config/Keybase")
    MASK(".local/share/keybase")
    MASK(".config/libaccounts-glib")
    MASK(".config/goa-1.0")
    /* Password stores. */
    MASK(".password-store")
    MASK(".local/share/gopass")
    MASK(".config/gopass")
    MASK(".config/op")
    MASK(".op")
    MASK(".config/Bitwarden")
    MASK(".config/Bitwarden CLI")
    MASK(".config/1Password")
    MASK(".config/keepassxc")
    MASK(".cache/keepassxc")
    MASK("*.kdbx")
    MASK(".lastpass")
    MASK(".config/lastpass")
    MASK(".local/share/lpass")
    MASK(".config/Authy Desktop")
    MASK(".config/yubico")
    MASK(".config/Yubico")
    MASK(".google_authenticator")
    MASK(".var/app/org.keepassxc.KeePassXC")
    MASK(".var/app/com.bitwarden.desktop")
    MASK("snap/bitwarden")
    MASK("snap/keepassxc")
    /* The network, version control and mail. */
    WITH_BACKUPS(".netrc")
    MASK("_netrc")
    WITH_BACKUPS(".authinfo")
    MASK(".authinfo.gpg")
    WITH_BACKUPS(".git-credentials")
    MASK(".config/git/credentials")
    MASK(".cache/git/credential")
    MASK(".git-credential-cache")
    MASK(".config/gh")
    MASK(".config/hub")
    MASK(".config/glab-cli")
    MASK(".config/tea")
    WITH_BACKUPS(".wgetrc")
    WITH_BACKUPS(".curlrc")
    WITH_BACKUPS(".msmtprc")
    MASK(".config/msmtp")
    WITH_BACKUPS(".fetchmailrc")
    WITH_BACKUPS(".mbsyncrc")
    WITH_BACKUPS(".offlineimaprc")
    MASK(".config/offlineimap")
    MASK(".mutt")
    MASK(".config/mutt")
    MASK(".config/neomutt")
    MASK("Maildir")
    MASK("Mail")
    MASK("mbox")
    MASK(".thunderbird")
    MASK("snap/thunderbird")
    MASK(".var/app/org.mozilla.Thunderbird")
    MASK(".config/evolution")
    MASK(".local/share/evolution")
    MASK(".smbcredentials")
    MASK(".config/Slack")
    MASK(".config/discord")
    MASK(".config/Signal")
    MASK(".config/ngrok")
    MASK(".ngrok2")
    MASK(".cloudflared")
    MASK(".config/tailscale")
    MASK(".config/remmina")
    MASK(".local/share/remmina")
    MASK(".config/filezilla")
    MASK(".ICEauthority")
    MASK(".Xauthority")
    MASK(".Xauthority-*")
    MASK(".xauth*")
    /* Clouds. */
    MASK(".aws")
    MASK(".azure")
    MASK(".config/gcloud")
    MASK(".config/configstore")
    MASK(".oci")
    MASK(".aliyun")
    MASK(".bluemix")
    MASK(".config/doctl")
    MASK(".config/hcloud")
    MASK(".config/scw")
    MASK(".config/linode-cli")
    MASK(".config/vultr-cli.yaml")
    MASK(".config/rclone")
    MASK(".rclone.conf")
    WITH_BACKUPS(".s3cfg")
    WITH_BACKUPS(".boto")
    MASK(".mc/config.json")
    MASK(".databricks")
    MASK(".databrickscfg*")
    MASK(".snowsql")
    MASK(".snowflake")
    MASK(".config/snowflake")
    MASK(".fly/config.yml")
    MASK(".config/fly")
    MASK(".config/netlify")
    MASK(".netlify")
    MASK(".config/vercel")
    MASK(".local/share/com.vercel.cli")
    MASK(".vercel")
    MASK(".config/heroku")
    MASK(".config/stripe")
    MASK(".config/.wrangler")
    MASK(".wrangler/config")
    MASK(".railway")
    MASK(".supabase")
    MASK(".sentryclirc")
    MASK(".kaggle")
    MASK(".huggingface")
    MASK(".cache/huggingface/token")
    MASK(".cache/huggingface/stored_tokens")
    MASK(".config/wandb")
    MASK(".dbt/profiles.yml")
    MASK(".pulumi/credentials.json")
    MASK(".terraform.d/credentials.tfrc.json")
    WITH_BACKUPS(".terraformrc")
    MASK(".vault-token")
    MASK(".vault_pass*")
    MASK(".config/consul")
    MASK(".ansible/vault*")
    MASK(".chef")
    /* Containers and clusters. */
    MASK(".docker")
    MASK(".config/containers/auth.json")
    MASK(".config/kube")
    MASK(".kube")
    MASK(".minikube")
    MASK(".config/helm/registry")
    MASK(".config/argocd")
    MASK(".argocd")
    MASK(".rancher")
    MASK(".talos")
    MASK(".sops")
    /* Package registries. */
    WITH_BACKUPS(".npmrc")
    WITH_BACKUPS(".yarnrc.yml")
    WITH_BACKUPS(".yarnrc")
    MASK(".config/pnpm/rc")
    MASK(".bunfig.toml")
    WITH_BACKUPS(".pypirc")
    MASK(".config/pip/pip.conf")
    MASK(".pip/pip.conf")
    MASK(".config/pypoetry/auth.toml")
    MASK(".config/uv/credentials")
    MASK(".local/share/uv/credentials")
    MASK(".condarc")
    WITH_BACKUPS_IN(".cargo", "credentials")
    WITH_BACKUPS_IN(".cargo", "credentials.toml")
    WITH_BACKUPS_IN(".gem", "credentials")
    MASK(".local/share/gem/credentials")
    MASK(".bundle/config")
    WITH_BACKUPS_IN(".m2", "settings.xml")
    MASK(".m2/settings-security.xml")
    WITH_BACKUPS_IN(".gradle", "gradle.properties")
    MASK(".config/composer/auth.json")
    MASK(".composer/auth.json")
    MASK(".nuget/NuGet/NuGet.Config")
    MASK(".hex/hex.config")
    MASK(".config/hex")
    MASK(".conan/.conan.db")
    MASK(".conan2/credentials.json")
    MASK(".config/hatch")
    MASK(".config/vcpkg")
    MASK(".config/JFrog")
    MASK(".jfrog")
    /* Databases. */
    WITH_BACKUPS(".pgpass")
    MASK(".pg_service.conf")
    WITH_BACKUPS(".my.cnf")
    MASK(".mylogin.cnf")
    MASK(".mongorc.js")
    MASK(".mongodb")
    MASK(".config/redis")
    MASK(".rediscli_auth")
    MASK(".config/DBeaverData")
    MASK(".local/share/DBeaverData")
    MASK(".config/JetBrains/*/options/other.xml")
    /* Agents' own tokens. */
    WITH_BACKUPS(".claude/.credentials.json")
    MASK(".codex/auth.json")
    MASK(".config/github-copilot")
    MASK(".copilot")
    MASK(".gemini/oauth_creds.json")
    MASK(".gemini/google_accounts.json")
    MASK(".gemini/.env")
    MASK(".local/share/opencode/auth.json")
    MASK(".local/share/crush")
    MASK(".local/share/goose/secrets.yaml")
    MASK(".config/goose/secrets.yaml")
    MASK(".config/aider")
    MASK(".aider/oauth-keys.env")
    MASK(".aider.conf.yml")
    MASK(".config/openai")
    MASK(".openai")
    MASK(".anthropic")
    MASK(".config/anthropic")
    MASK(".config/llm/keys.json")
    MASK(".config/io.datasette.llm/keys.json")
    MASK(".config/cursor/auth.json")
    MASK(".config/amp")
    MASK(".local/share/amp/secrets.json")
    MASK(".qwen/oauth_creds.json")
    MASK(".continue/.env")
    MASK(".codeium")
    MASK(".config/ollama")
    MASK(".ollama/id_ed25519")
    MASK(".config/Claude")
    /* Loose secrets. */
    WITH_BACKUPS(".env")
    MASK(".env.*")
    MASK(".envrc")
    MASK(".secrets")
    MASK(".config/secrets")
    /* Browsers: sessions are passwords. */
    MASK(".mozilla")
    MASK(".config/mozilla")
    MASK(".cache/mozilla")
    MASK(".librewolf")
    MASK(".waterfox")
    MASK(".zen")
    MASK(".tor-browser")
    MASK(".local/share/torbrowser")
    MASK(".config/BraveSoftware")
    MASK(".config/chromium")
    MASK(".config/google-chrome*")
    MASK(".config/microsoft-edge*")
    MASK(".config/opera*")
    MASK(".config/vivaldi*")
    MASK(".config/thorium")
    MASK(".config/qutebrowser")
    MASK(".local/share/qutebrowser")
    MASK(".config/epiphany")
    MASK(".local/share/epiphany")
    MASK(".local/share/falkon")
    MASK(".config/falkon")
    MASK(".cache/chromium")
    MASK(".cache/google-chrome*")
    MASK(".cache/BraveSoftware")
    MASK(".cache/microsoft-edge*")
    MASK("snap/firefox")
    MASK("snap/chromium")
    MASK("snap/brave")
    MASK("snap/opera")
    MASK(".var/app/org.mozilla.firefox")
    MASK(".var/app/org.chromium.Chromium")
    MASK(".var/app/com.google.Chrome*")
    MASK(".var/app/com.brave.Browser")
    MASK(".var/app/com.microsoft.Edge*")
    MASK(".var/app/com.opera.Opera")
    MASK(".var/app/com.vivaldi.Vivaldi")
    MASK(".var/app/io.gitlab.librewolf-community")
    MASK(".var/app/app.zen_browser.zen")
    MASK(".var/app/org.gnome.Epiphany")
    MASK(".var/app/com.github.micahflee.torbrowser-launcher")
    /* Wallets. */
    MASK(".bitcoin")
    MASK(".ethereum")
    MASK(".electrum")
    MASK(".config/solana")
    MASK(".config/Exodus")
    MASK(".config/Ledger Live")
    /* What was typed: histories of shells, interpreters and clients. */
    WITH_BACKUPS(".bash_history")
    MASK(".bash_history-*")
    MASK(".bash_sessions")
    WITH_BACKUPS(".zsh_history")
    MASK(".zsh_sessions")
    WITH_BACKUPS(".zhistory")
    MASK(".histfile")
    MASK(".history")
    MASK(".sh_history")
    MASK(".ksh_history")
    MASK(".ash_history")
    MASK(".dash_history")
    MASK(".local/share/fish/fish_history")
    MASK(".config/fish/fish_variables")
    MASK(".local/share/nushell")
    MASK(".config/nushell/history*")
    MASK(".local/share/xonsh")
    MASK(".local/share/atuin")
    MASK(".local/share/mcfly")
    MASK(".local/state/zsh/history")
    MASK(".local/state/bash/history")
    MASK(".cache/zsh/history")
    MASK(".python_history")
    MASK(".local/state/python_history")
    MASK(".ipython/profile_*/history.sqlite")
    MASK(".node_repl_history")
    MASK(".ts_node_repl_history")
    MASK(".bun_repl_history")
    MASK(".deno/deno_history.txt")
    MASK(".irb_history")
    MASK(".irb-history")
    MASK(".local/share/irb/irb_history")
    MASK(".pry_history")
    MASK(".local/share/pry/pry_history")
    MASK(".Rhistory")
    MASK(".julia/logs/repl_history.jl")
    MASK(".ghc/ghci_history")
    MASK(".scala_history*")
    MASK(".local/share/jshell")
    MASK(".php_history")
    MASK(".perldb_history")
    MASK(".lua_history")
    MASK(".erlang-history*")
    MASK(".psql_history*")
    MASK(".mysql_history")
    MASK(".mariadb_history")
    MASK(".sqlite_history")
    MASK(".rediscli_history")
    MASK(".mongo_history")
    MASK(".mongosh")
    MASK(".dbshell")
    MASK(".config/mycli")
    MASK(".config/pgcli/history")
    MASK(".usql_history")
    MASK(".lesshst")
    MASK(".local/state/lesshst")
    MASK(".wget-hsts")
    MASK(".viminfo")
    MASK(".vim/viminfo")
    MASK(".local/state/nvim/shada")
    MASK(".local/share/nvim/shada")
    MASK(".config/nvim/shada")
    MASK(".gdb_history")
    MASK(".lldb/*history")
    MASK(".local/share/recently-used.xbel")
    MASK(".recently-used")
    ""; /* and the empty one that ends them */
/* clang-format on */

const size_t policy_default_masks_bytes = sizeof policy_default_masks;

/* clang-format off */
const char policy_default_spools[] =
    MASK("/var/mail")
    MASK("/var/spool/mail")
    /* What cron and at are to run. */
    MASK("/var/spool/cron")
    MASK("/var/spool/at")
    /* The memory of programs that have crashed. */
    MASK("/var/crash")
    MASK("/var/lib/systemd/coredump");
/* clang-format on */

/* The case of letters does not matter. What only looks like a secret stays: AUTHOR and its kind,
 * numbers of tokens (MAX_THINKING_TOKENS), TOKENIZERS_PARALLELISM, DESKTOP_SESSION. There is no *_KEY_*:
 * git fails where GIT_CONFIG_COUNT is set and GIT_CONFIG_KEY_0 is not. */
const char *const policy_default_filters[] = {
    /* By what is in a name. */
    "*ACCESS_KEY*",
    "*API_KEY*",
    "*APIKEY*",
    "*BEARER*",
    "*CONNECTION_STRING*",
    "*CONNSTR*",
    "*COOKIE*",
    "*CREDENTIAL*",
    "*CREDS*",
    "*DEPLOY_KEY*",
    "*ENCRYPTION_KEY*",
    "*JWT*",
    "*LICENSE_KEY*",
    "*MASTER_KEY*",
    "*MNEMONIC*",
    "*PASSCOMMAND*",
    "*PASSPHRASE*",
    "*PASSWD*",
    "*PASSWORD*",
    "*PRIVATE_KEY*",
    "*SECRET*",
    "*SEED_PHRASE*",
    "*SIGNING_KEY*",
    "*WEBHOOK*",
    /* By what it ends in. */
    "*ACCESS_TOKENS",
    "*API_TOKENS",
    "*ASKPASS",
    "*AUTH",
    "*AUTH_STRING",
    "*AUTH_TOKENS",
    "*DSN",
    "*PASS",
    "*TOKEN",
    "*KEYRING",
    "*_KEY",
    "*_KEYS",
    "*_KEY_B64",
    "*_KEY_BASE64",
    "*_KEY_DEV*",
    "*_KEY_HEX",
    "*_KEY_ID",
    "*_KEY_LIVE",
    "*_KEY_PEM",
    "*_KEY_PROD*",
    "*_KEY_STAGING",
    "*_KEY_TEST",
    "*_PAT",
    "*_PID",
    "*_PIN",
    "*_PWD",
    "*_SOCK",
    "*_SOCKET",
    "*_SOCKET_PATH",
    "*_TOKEN_*",
    "AGE_KEY*",
    "KEY",
    "SOPS_AGE_KEY*",
    "SSH_KEY*",
    /* Addresses with a password or a token in them, whatever the variable is called: proxies,
     * package indexes, databases. */
    "*://*:*@*",
    "*://ghp_*@*",
    "*://gho_*@*",
    "*://github_pat_*@*",
    "*://glpat-*@*",
    /* Clouds and services. */
    "AWS_*",
    "AZURE_CLIENT_ID",
    "AZURE_TENANT_ID",
    "BW_SESSION",
    "CLOUDSDK_*",
    "DATABRICKS_*",
    "DOCKER_AUTH_CONFIG",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG__AUTH*",
    "NPM_CONFIG_*:_AUTH*",
    "OP_SESSION_*",
    "PGPASSFILE",
    "PGSERVICEFILE",
    "RCLONE_CONFIG_*",
    "STRIPE_SK*",
    "TF_VAR_*",
    "VAULT_*",
    /* Addresses that are for those who may know them, and mostly have a password in them. */
    "AMQP_URL",
    "BROKER_URL",
    "CELERY_BROKER_URL",
    "*DATABASE_URL",
    "DB_URL",
    "ELASTICSEARCH_URL",
    "MONGO*_URI",
    "MONGO*_URL",
    "MYSQL_URL",
    "POSTGRES_URL",
    "RABBITMQ_URL",
    "REDIS_URL",
    "SQLALCHEMY_DATABASE_URI",
    /* The host's session: displays, agents, buses, terminals' own sockets. */
    "ALACRITTY_SOCKET",
    "DBUS_*_ADDRESS",
    "GNOME_KEYRING_CONTROL",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "ICEAUTHORITY",
    "KITTY_LISTEN_ON",
    "MAIL",
    "NVIM_LISTEN_ADDRESS",
    "NVIM",
    "PULSE_SERVER",
    "SESSION_MANAGER",
    "STY",
    "TMUX",
    "VSCODE_*",
    "WEZTERM_UNIX_SOCKET",
    "XAUTHORITY",
    NULL,
};
