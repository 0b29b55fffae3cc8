/* SPDX-License-Identifier: MIT */
#include "held/names.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/str.h"

#define COMPONENTS_MAX 256 /* of a path; deeper ones do not count */
#define EXECUTABLE (S_IXUSR | S_IXGRP | S_IXOTH)

#define PATTERNS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define HELD(by, ...)                                                                              \
    {                                                                                              \
        .reason = "obeyed by " by, .program = by, .class = NAMES_UNASKED, .held = NAMES_HELD,      \
        .gone = true, .patterns = PATTERNS(__VA_ARGS__)                                            \
    }
#define IN_HOME "a jail has a copy of the home directory"

/* In a class, the most specific reason first.
 *
 * Not here, because nothing executes what they name: files of versions (.python-version, .nvmrc), of
 * formatters (.rustfmt.toml, .perltidyrc) and of warnings (clippy.toml, deny.toml); tasks.json and
 * launch.json outside .vscode; .projectile. Nor *.tf, the source of a Terraform project. Lock files,
 * requirements.txt and go.mod are judged by their contents, see risk_text.h. */
const struct names_row names_rows[] = {
    /* ---- git and other version control ---- */
    {.reason = "executed by git",
     .class = NAMES_UNASKED,
     .why_not = "git's own files are private in a jail",
     .patterns = PATTERNS(".git/hooks", "*.git/hooks", ".git/modules/*/hooks")},
    {.reason = "settings that git obeys",
     .class = NAMES_UNASKED,
     .gone = true,
     .why_not = "git's own files are private in a jail",
     .patterns = PATTERNS(".git/config", ".git/config.worktree", "*.git/config",
                          ".git/info/attributes", ".git/modules/*/config")},
    {.reason = "part of a git repository",
     .class = NAMES_UNASKED,
     .gone = true,
     .why_not = "a new one is held",
     .patterns = PATTERNS(".git")},
    /* Without a HEAD no directory is a repository, whatever its other files are called. */
    {.reason = "part of a git repository",
     .class = NAMES_UNASKED,
     .gone = true,
     .exact = true,
     .why_not = "it is held with the other parts of a bare repository",
     .patterns = PATTERNS("HEAD")},
    {.reason = "part of a git repository",
     .program = "git",
     .class = NAMES_UNASKED,
     .held = NAMES_HELD_NEW,
     .patterns = PATTERNS(".git")},
    {.reason = "part of a git repository",
     .program = "git",
     .class = NAMES_UNASKED,
     .held = NAMES_HELD_BARE,
     .exact = true,
     .patterns = PATTERNS("HEAD", "config", "hooks", "objects", "refs", "commondir")},
    {.reason = "executed by git",
     .class = NAMES_UNASKED,
     .why_not =
         "git runs them only where its configuration names them, and then they are read-only",
     .patterns = PATTERNS(".githooks", ".git-hooks", "githooks", "git-hooks")},
    {.reason = "settings that git obeys",
     .class = NAMES_UNASKED,
     .gone = true,
     .why_not = "in a project, only addresses in .lfsconfig are obeyed",
     .patterns = PATTERNS(".gitconfig", ".lfsconfig")},
    {.reason = "settings that git obeys",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .gone = true,
     .why_not = IN_HOME,
     .patterns = PATTERNS(".config/git", ".git-templates", ".git-template", ".git_template",
                          ".gittemplates")},
    {.reason = "filters and merge drivers that git runs",
     .class = NAMES_UNASKED,
     .gone = true,
     .why_not = "it names only programs of the user's configuration",
     .patterns = PATTERNS(".gitattributes")},
    {.reason = "part of a repository of another kind",
     .program = "its version control",
     .class = NAMES_UNASKED,
     .held = NAMES_HELD_NEW,
     .patterns = PATTERNS(".hg", ".jj", ".sl", ".fslckout", "_FOSSIL_")},
    {.reason = "part of a repository of another kind",
     .class = NAMES_UNASKED,
     .gone = true,
     .why_not = "a new one is held, and every command of fossil writes to it",
     .patterns = PATTERNS(".fslckout", "_FOSSIL_")},
    /* ---- held by name ---- */
    HELD("direnv", ".envrc", ".envrc.local", ".envrc.private"),
    HELD("Visual Studio Code", ".vscode"),
    HELD("JetBrains editors", ".idea"),
    HELD("Zed", ".zed"),
    HELD("tools for development containers", ".devcontainer", ".devcontainer.json"),
    HELD("husky", ".husky"),
    HELD("agents that use MCP", ".mcp.json", ".lsp.json"),
    HELD("Claude Code", ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks",
         ".claude/plugins", ".claude/.mcp.json", ".claude/statusline.sh", ".claude/statusline.py",
         ".claude/statusline.js", ".claude/statusline-command.sh", ".claude-plugin",
         ".claude/scheduled_tasks.json", ".claude/workflows", ".claude/loop.md"),
    HELD("Codex", ".codex"),
    HELD("Cursor", ".cursor"),
    HELD("Gemini CLI", ".gemini"),
    HELD("Qwen Code", ".qwen"),
    HELD("opencode", ".opencode", "opencode.json", "opencode.jsonc"),
    HELD("Windsurf", ".windsurf"),
    HELD("Roo Code", ".roo"),
    HELD("aider", ".aider.conf.yml", ".aider.conf.yaml"),
    HELD("Copilot", ".github/hooks", ".github/copilot/settings.json", ".copilot",
         ".github/lsp.json"),
    HELD("Crush", ".crush.json", "crush.json"),
    HELD("Amazon Q", ".amazonq/mcp.json", ".amazonq/cli-agents", ".amazonq/agents"),
    HELD("Kiro", ".kiro/hooks", ".kiro/settings", ".kiro/agents"),
    HELD("Factory", ".factory/mcp.json", ".factory/hooks", ".factory/settings.json",
         ".factory/settings.local.json"),
    HELD("Cline", ".cline", ".clinerules/hooks"),
    HELD("Kilo Code", ".kilocode/mcp.json", ".kilo"),
    HELD("Junie", ".junie/mcp"),
    HELD("an agent", ".amp", ".goose", ".continue", ".continuerc.json", ".trae", ".augment",
         ".qoder", ".codebuddy", ".tabnine", ".warp", ".pi", ".vibe", ".kimi", ".iflow",
         ".zencoder", ".plandex", ".conductor", "conductor.json", ".agents/plugins",
         ".agents/hooks", ".openhands/setup.sh", ".openhands/pre-commit.sh"),
    HELD("Mercurial", ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires", ".hg/sharedpath"),
    HELD("Jujutsu", ".jj/repo/config.toml", ".jj/repo/store/git_target"),
    HELD("Sapling", ".sl/config", ".sl/requires", ".sl/sharedpath"),
    HELD("Vim", ".exrc", "_exrc", ".nvim.lua", ".nvimrc", ".nvim", ".lvimrc", ".local.vimrc",
         ".lazy.lua"),
    HELD("Emacs", ".dir-locals.el", ".dir-locals-2.el"),
    HELD("Helix", ".helix"),
    HELD("Kakoune", ".kakrc.local"),
    HELD("other editors", ".vs", ".fleet", ".nova", ".theia", ".phpactor.json", ".phpactor.yml"),
    HELD("language servers", "rust-analyzer.toml", ".rust-analyzer.toml", ".luarc.json",
         ".luarc.jsonc", "omnisharp.json", "hie.yaml", ".merlin"),
    HELD("build servers", ".bsp", "buildServer.json", ".sourcekit-lsp"),
    HELD("autoenv", ".autoenv", ".autoenv.zsh", ".env.zsh", ".in"),
    HELD("shadowenv", ".shadowenv.d"),
    HELD("brig", ".brig.conf"),
    /* ---- shells ---- */
    {.reason = "runs in every new shell",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(
         ".bashrc", ".bashrc.*", ".bash_aliases", ".bash_functions", ".bash_completion",
         ".bash_completion.d", ".config/bash", ".local/share/bash-completion", ".zshrc", ".zshrc.*",
         ".zshenv", ".zshenv.*", ".zsh", ".oh-my-zsh", ".config/zsh", ".zinit", ".zplug",
         ".antigen", ".p10k.zsh", ".config/fish", ".local/share/fish/vendor_*", ".kshrc", ".mkshrc",
         ".shrc", ".shinit", ".cshrc", ".tcshrc", ".xonshrc", ".config/xonsh", ".config/nushell",
         ".elvish", ".config/elvish", ".config/powershell", ".config/starship.toml", ".fzf",
         ".fzf.bash", ".fzf.zsh", ".bash_env")},
    {.reason = "runs at the next login",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(
         ".profile", ".profile.*", ".bash_profile", ".bash_login", ".bash_logout", ".zprofile",
         ".zlogin", ".zlogout", ".login", ".logout", ".xprofile", ".xinitrc", ".xserverrc",
         ".xsession", ".xsessionrc", ".Xsession", ".pam_environment", ".environment",
         ".config/environment.d", ".config/autostart", ".config/autostart-scripts",
         ".config/plasma-workspace", ".config/upstart", ".config/i3", ".config/sway",
         ".config/hypr", ".config/openbox", ".config/awesome", ".config/bspwm", ".config/sxhkd",
         ".xbindkeysrc", ".config/niri", ".config/river", ".config/labwc", ".config/qtile",
         ".config/xmonad", ".xmonad", ".config/waybar", ".config/swayidle", ".config/kanshi",
         ".config/autorandr", ".config/dunst", ".config/polybar", ".config/lxsession",
         ".config/skhd", ".skhdrc", ".yabairc", ".hammerspoon", ".fluxbox", ".icewm", ".dwm",
         ".config/cosmic", ".config/espanso", ".config/autokey", ".config/conky", ".conkyrc",
         "Library/LaunchAgents")},
    {.reason = "keys that type a command in a shell",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(".inputrc", ".config/readline")},
    {.reason = "commands that a terminal runs",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(".tmux.conf", ".tmux", ".config/tmux", ".screenrc", ".byobu",
                          ".config/kitty", ".config/alacritty", ".config/wezterm", ".wezterm.lua",
                          ".config/ghostty", ".config/terminator", ".config/zellij", ".config/foot",
                          ".config/rio", ".config/tilix", ".config/guake", ".hyper.js", ".urxvt",
                          ".Xresources", ".config/tmuxinator", ".config/sesh")},
    {.reason = "runs in a directory that you enter",
     .class = NAMES_UNASKED,
     .why_not = "written as part of a project; the tools ask before they trust a new one",
     .patterns =
         PATTERNS(".direnv", ".rvmrc", ".mise.toml", "mise.toml", "mise.*.toml", ".mise.*.toml",
                  ".mise", ".config/mise", ".config/mise.toml", ".tool-versions", "mise-tasks",
                  ".mise-tasks", ".prototools", ".flox", "pkgx.yaml", ".pkgx.yaml",
                  "mise/config.toml", "mise/tasks", ".miserc.toml", ".rtx.toml")},
    /* ---- services, the desktop ---- */
    {.reason = "a service or timer that systemd starts",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(".config/systemd", ".local/share/systemd", ".config/user-tmpfiles.d")},
    {.reason = "a service that the session starts",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(".local/share/dbus-1", ".config/dbus-1", ".config/supervisor", ".pm2")},
    {.reason = "decides which program opens a file",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(
         ".local/share/applications", ".local/share/mime", ".config/mimeapps.list", ".mailcap",
         ".mime.types", ".lessfilter", ".lesskey", ".config/lesskey", ".config/ranger",
         ".config/lf", ".config/vifm", ".config/xdg-desktop-portal", ".local/share/kservices5",
         ".local/share/kio", ".local/share/nautilus", ".local/share/nemo",
         ".local/share/gnome-shell", ".config/yazi", ".config/nnn", ".config/rofi")},
    {.reason = "a program that the browser starts",
     .class = NAMES_UNASKED,
     .why_not = "browsers look for it only in a home directory",
     .patterns = PATTERNS("NativeMessagingHosts", "native-messaging-hosts")},
    /* ---- programs in the search path ---- */
    {.reason = "a program in the search path",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns = PATTERNS(
         ".local/bin", "bin", ".bin", ".cargo/bin", ".cargo/env", ".go/bin", "go/bin",
         ".npm-global", ".npm-packages", ".yarn/bin", ".bun/bin", ".deno/bin", ".local/share/pnpm",
         ".pyenv", ".rbenv", ".nvm", ".asdf", ".volta", ".sdkman", ".rustup", ".fnm",
         ".local/share/mise", ".local/share/fnm", ".local/pipx", ".local/share/pipx",
         ".local/share/uv", ".krew", ".local/opt", ".dotnet/tools", ".composer/vendor", ".gem",
         ".jenv", ".nix-profile", ".nix-defexpr", ".config/nixpkgs", ".config/home-manager")},
    {.reason = "a program that the project's tools start",
     .class = NAMES_UNASKED,
     .why_not = "installing programs is work of a run",
     .patterns = PATTERNS("node_modules/.bin", ".venv/bin", "venv/bin", ".virtualenv/bin",
                          "env/bin", ".tox/*/bin", ".nox/*/bin", "vendor/bin", ".venv/Scripts",
                          "venv/Scripts", ".bundle/bin")},
    {.reason = "names the Python that editors start",
     .class = NAMES_UNASKED,
     .why_not = "installing programs is work of a run",
     .patterns = PATTERNS("pyvenv.cfg")},
    /* ---- editors ---- */
    {.reason = "executed by an editor",
     .class = NAMES_UNASKED,
     .why_not = "a repository may be one of dotfiles",
     .patterns = PATTERNS(".vimrc", "_vimrc", ".vim", ".gvimrc")},
    {.reason = "executed by an editor",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns =
         PATTERNS(".config/nvim", ".local/share/nvim", ".config/vim", ".emacs", ".emacs.el",
                  ".emacs.d", ".config/emacs", ".spacemacs", ".spacemacs.d", ".doom.d",
                  ".config/doom", ".nanorc", ".config/nano", ".config/helix", ".config/kak",
                  ".config/micro", ".config/Code", ".config/VSCodium", ".config/Code - OSS",
                  ".config/Cursor", ".config/zed", ".local/share/zed", ".config/sublime-text",
                  ".config/JetBrains", ".local/share/JetBrains", ".ideavimrc", ".config/Windsurf",
                  ".config/lapce", ".config/lvim", ".config/Antigravity", ".antigravity",
                  ".config/Kiro", ".config/Trae", ".config/Void", ".local/share/vim", ".obsidian")},
    {.reason = "tasks and settings of an editor",
     .class = NAMES_UNASKED,
     .gone = true,
     .why_not = "an editor is told to open it, and it has any name",
     .patterns = PATTERNS("*.code-workspace", "*.sublime-project")},
    {.reason = "read by a language server",
     .class = NAMES_UNASKED,
     .why_not = "written as part of a project",
     .patterns = PATTERNS(
         ".formatter.exs", ".clangd", ".ycm_extra_conf.py", ".neoconf.json", ".solargraph.yml",
         "config.nims", "*.nims", "sgconfig.yml", "pyrefly.toml", ".oxlintrc.json", "cspell.json",
         ".markdownlint-cli2.jsonc", ".markdownlint-cli2.cjs", ".markdownlint-cli2.mjs")},
    /* ---- agents ---- */
    {.reason = "settings of an agent",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .gone = true,
     .why_not = IN_HOME,
     .patterns = PATTERNS(".config/opencode", ".config/goose", ".config/claude", ".config/Claude",
                          ".config/crush", ".config/amp", ".config/github-copilot", ".config/mcp",
                          ".codeium", ".config/zed/prompts", ".config/codex", ".config/gemini",
                          ".config/factory", ".config/openhands", ".config/io.datasette.llm",
                          ".config/aichat", ".openclaw", ".hermes")},
    /* ---- settings of programs ---- */
    {.reason = "settings that can start programs",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .gone = true,
     .why_not = IN_HOME,
     .patterns = PATTERNS(
         ".docker", ".config/containers", ".kube", ".aws", ".config/gcloud", ".azure", ".config/gh",
         ".config/glab-cli", ".config/hub", ".curlrc", ".config/curlrc", ".wgetrc", ".netrc",
         ".hgrc", ".config/hg", ".subversion", ".config/jj", ".jjconfig.toml", ".ssh", ".gnupg",
         ".config/brig", ".config/direnv", ".direnvrc", ".config/ripgreprc", ".ackrc", ".my.cnf",
         ".psqlrc", ".sqliterc", ".muttrc", ".mutt", ".config/mutt", ".config/neomutt", ".mailrc",
         ".forward", ".procmailrc", ".fetchmailrc", ".msmtprc", ".mbsyncrc", ".config/mpv",
         ".terraformrc", ".vagrant.d", ".ansible.cfg", ".config/helm", ".config/lazygit",
         ".config/k9s", ".local/share/direnv/allow", ".local/state/mise/trusted-configs",
         ".config/atuin", ".config/aerc", ".newsboat", ".config/newsboat", ".weechat", ".irssi",
         ".config/qutebrowser", ".config/gitui", ".config/tig", ".tigrc", ".config/jjui", ".actrc",
         ".config/act", ".config/rclone", ".cache/pre-commit", ".config/broot", ".config/fastfetch",
         ".config/lazydocker", ".config/gh-dash", ".local/share/flatpak/overrides")},
    {.reason = "settings of a package manager",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .gone = true,
     .why_not = IN_HOME,
     .patterns =
         PATTERNS(".config/pip", ".pip", ".pydistutils.cfg", ".config/pnpm", ".config/yarn",
                  ".config/uv", ".config/go", ".m2", ".gradle/init.d", ".gradle/init.gradle",
                  ".gradle/init.gradle.kts", ".gradle/gradle.properties", ".sbt", ".ivy2",
                  ".config/pypoetry", ".config/composer", ".composer", ".cabal/config",
                  ".stack/config.yaml", ".opam", ".hex", ".nuget", ".config/NuGet", ".config/nix")},
    {.reason = "runs when an interpreter or debugger starts",
     .class = NAMES_UNASKED,
     .where = NAMES_HOME,
     .why_not = IN_HOME,
     .patterns =
         PATTERNS(".ipython", ".jupyter", ".local/share/jupyter", ".julia/config", ".config/gdb",
                  ".config/ghc", ".ghc", ".config/R", ".config/irb", ".config/pry", ".config/pudb",
                  ".config/ptpython", ".config/radare2", ".config/rizin", ".gef.rc", ".sbclrc",
                  ".clisprc", ".racketrc", ".ammonite", ".lein", ".clojure", ".tclshrc", ".gprc")},
    /* ---- hooks, CI ---- */
    {.reason = "executed by git",
     .class = NAMES_UNASKED,
     .why_not = "written as part of a project, and run only where the user has installed its hook",
     .patterns = PATTERNS(
         ".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml",
         "lefthook.yml", "lefthook.yaml", ".lefthook.yml", "lefthook-local.yml", ".lefthook",
         ".overcommit.yml", ".lintstagedrc*", ".huskyrc*", ".simple-git-hooks.*",
         ".captain-hook.json", "captainhook.json", "prek.toml", "lefthook.toml", "lefthook.json",
         ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", "hk.pkl", "hk.local.pkl",
         ".config/hk.pkl", ".gitlint", "nano-staged.json", ".nano-staged*", ".vite-hooks")},
    {.reason = "executed by continuous integration",
     .class = NAMES_UNASKED,
     .why_not = "written as part of a project, and run only after a push",
     .patterns = PATTERNS(
         ".github/workflows", ".github/actions", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".gitlab/ci",
         ".circleci", "Jenkinsfile", "Jenkinsfile.*", ".jenkins", "azure-pipelines.yml",
         "azure-pipelines.yaml", ".azure-pipelines", ".azuredevops", ".travis.yml", "appveyor.yml",
         ".appveyor.yml", ".drone.yml", ".drone.star", ".woodpecker", ".woodpecker.yml",
         ".woodpecker.yaml", "bitbucket-pipelines.yml", ".buildkite", ".cirrus.yml", ".cirrus.star",
         ".teamcity", "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "buildspec.yaml",
         ".forgejo", ".gitea", ".tekton", ".semaphore", "codefresh.yml", ".build.yml", ".builds",
         ".dagger", "dagger.json", "action.yml", "action.yaml", "netlify.toml", "vercel.json",
         "amplify.yml", "fly.toml", "render.yaml", "wrangler.toml", "wrangler.json",
         "wrangler.jsonc", "bitrise.yml", "codemagic.yaml", ".readthedocs.yaml", ".readthedocs.yml",
         "zuul.yaml", ".zuul.yaml", ".zuul.d", "zuul.d", ".packit.yaml", "packit.yaml",
         "*.gitlab-ci.yml", "firebase.json", ".github/settings.yml", ".github/renovate.json",
         ".github/dependabot.yml")},
    {.reason = "submodules that git fetches",
     .class = NAMES_WHEN_RUN,
     .gone = true,
     .patterns = PATTERNS(".gitmodules")},
    {.reason = "variables that programs load",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS(".env", ".env.local", ".env.*.local", ".flaskenv", ".env.production",
                          ".env.development", ".env.test", ".env.staging")},
    {.reason = "a job that cron starts",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS("crontab", ".crontab", "cron.d", "cron.hourly", "cron.daily",
                          "cron.weekly", "cron.monthly", "anacrontab")},
    {.reason = "a launcher that the desktop starts",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS("*.desktop")},
    {.reason = "a service or timer that systemd starts",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS("*.service", "*.timer", "*.socket")},
    {.reason = "tasks and settings of an editor",
     .class = NAMES_WHEN_RUN,
     .gone = true,
     .patterns =
         PATTERNS(".gitpod.yml", ".settings", ".classpath", ".project", "nbproject", "*.iml",
                  "*.ipr", ".cursor-server", ".vscode-server", ".vscode-remote", ".vimspector.json",
                  ".projections.json", ".sublimelinterrc", "*.sublime-build", ".vsls.json",
                  "Session.vim", ".session.vim", ".emacs.desktop", ".kakrc", ".replit",
                  ".stackblitzrc", ".idx", ".lazygit.yml")},
    {.reason = "settings of an agent",
     .class = NAMES_WHEN_RUN,
     .gone = true,
     .patterns = PATTERNS(".claude.json", "mcp.json", ".aider.model.settings.yml", ".kiro",
                          ".factory", ".openhands", ".kilocode", ".junie", ".amazonq")},
    {.reason = "commands and skills that an agent runs",
     .class = NAMES_WHEN_RUN,
     .patterns =
         PATTERNS(".claude/commands", ".claude/skills", ".claude/agents", ".claude/output-styles",
                  ".claude/statusline*", ".github/prompts", ".github/chatmodes", ".github/agents",
                  ".github/skills", "SKILL.md", ".agents", "hooks/hooks.json")},
    {.reason = "settings of a package manager",
     .class = NAMES_WHEN_RUN,
     .gone = true,
     .patterns = PATTERNS(".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins",
                          ".pnpmfile.cjs", ".pnpmfile.mjs", ".pnp.cjs", ".pnp.loader.mjs",
                          "pnpm-workspace.yaml", "bunfig.toml", ".bunfig.toml", "pip.conf",
                          ".pypirc", "uv.toml", ".condarc", ".cargo/config.toml", ".cargo/config",
                          ".cargo/credentials.toml", ".bundle/config", ".gemrc",
                          "rust-toolchain.toml", "rust-toolchain", ".mvn", "nuget.config",
                          "NuGet.Config", ".sdkmanrc", ".pdm-python", "pdm.toml", ".sbtopts",
                          ".jvmopts", ".corepack.env", "vlt.json", "pixi.toml", ".ncurc*")},
    {.reason = "runs when an interpreter or debugger starts",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS(
         ".gdbinit", ".lldbinit", ".pdbrc", ".pdbrc.py", ".pythonrc", ".pythonrc.py",
         ".pythonstartup", "ipython_config.py", "jupyter_*config.py", ".Rprofile", ".Renviron",
         ".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".octaverc", ".iex.exs", ".perldb",
         ".psysh.php", ".replrc", ".replyrc", ".lldbinit-*", ".utoprc", ".radare2rc",
         ".gdbearlyinit", "*-gdb.py", "*-gdb.gdb", "*-gdb.scm", ".valgrindrc", ".erlang",
         ".proverc", ".simplecov", ".pryrc.rb", ".rdbgrc", ".byebugrc")},
    {.reason = "runs whenever Python starts",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS("*.pth", "sitecustomize.py", "usercustomize.py", "sitecustomize",
                          "usercustomize", "python*._pth", "*.egg-link")},
    /* ---- builds and tests ---- */
    {.reason = "runs when you build or test",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS(
         "Makefile", "GNUmakefile", "BSDmakefile", "Makefile.*", "*.mk", "*.mak", "justfile",
         ".justfile", "*.just", "CMakeLists.txt", "*.cmake", "CMakePresets.json",
         "CMakeUserPresets.json", "configure.ac", "configure.in", "*.m4", "autogen.sh",
         "bootstrap.sh", "meson.build", "meson_options.txt", "meson.options", "*.ninja",
         "SConstruct", "SConscript", "wscript", "xmake.lua", "premake*.lua", "Tupfile", "*.pri",
         "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradlew",
         "gradlew.bat", "gradle.properties", "gradle/wrapper", "buildSrc", "build-logic",
         "*.gradle", "pom.xml", "build.xml", "mvnw", "mvnw.cmd", "build.sbt", "*.sbt", "build.sc",
         "build.mill", "build.rs", "build.zig", "build.zig.zon", "Package.swift", "mix.exs",
         "rebar.config", "dune-project", "Setup.hs", "*.nimble", "*.rockspec", "setup.py",
         "setup.cfg", "conftest.py", "noxfile.py", "tox.ini", "pytest.ini", "fabfile.py", "dodo.py",
         "pavement.py", "hatch_build.py", "hatch.toml", "SConscript.py", "binding.gyp", "*.gyp",
         "*.gypi", "Rakefile", "*.rake", "Gemfile", "*.gemspec", "Guardfile", "Capfile", "Brewfile",
         "Fastfile", "Podfile", "Dangerfile", "Thorfile", "Gruntfile.*", "gulpfile.*", "Jakefile*",
         "Cakefile", "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.cts",
         "*.config.mts", ".mocharc.*", ".storybook", "deno.json", "deno.jsonc", "turbo.json",
         "nx.json", "Taskfile.yaml", "Taskfile.dist.yml", "Earthfile", "Tiltfile", "skaffold.yaml",
         "Dockerfile", "Dockerfile.*", "*.Dockerfile", "Containerfile", "docker-compose*.yml",
         "docker-compose*.yaml", "compose.yml", "compose.yaml", "compose.*.yml", "compose.*.yaml",
         "docker-bake.hcl", "Vagrantfile", "Procfile", "Procfile.*", "WORKSPACE.bazel",
         "MODULE.bazel", "BUILD.bazel", "*.bzl", ".bazelrc", ".buckconfig", "pants.toml",
         "flake.nix", "shell.nix", "default.nix", "devenv.nix", "devbox.json", "guix.scm",
         "*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "*.sln", "*.slnx", "*.props", "*.targets",
         "Directory.Build.*", "global.json", "*.xcodeproj", "*.xcworkspace", "*.pbxproj",
         "project.clj", "deps.edn", "shadow-cljs.edn", "bb.edn", "phpunit.xml", "phpunit.xml.dist",
         "Makefile.PL", "Build.PL", "cpanfile", "debian/rules", "PKGBUILD", "APKBUILD",
         "ansible.cfg", "taskfile.yml", "*.conf.js", "*.conf.cjs", "*.conf.mjs", "*.conf.ts",
         ".*rc.js", ".*rc.cjs", ".*rc.mjs", ".*rc.ts", ".*-config.js", ".*-config.cjs", "*.user",
         "MSBuild.rsp", "magefile.go", "terragrunt.hcl", ".terraform", "helmfile.yaml",
         "helmfile.yaml.gotmpl", "pytest.toml", ".pytest.toml", ".pytest.ini", "conanfile.py",
         "config.ru", "Appraisals", "ember-cli-build.js", "webpack.mix.js", "gulp.js", ".air.toml",
         ".goreleaser.yml", ".goreleaser.yaml", ".golangci.yml", ".golangci.yaml", ".golangci.toml",
         ".custom-gcl.yml", ".credo.exs", ".ddev", ".lando.yml", ".tmuxinator.yml", ".tmuxp.yaml",
         ".tmuxp.yml", "mprocs.yaml", "process-compose.yaml", "devspace.yaml", "werf.yaml",
         "devfile.yaml", ".devfile.yaml", "moon.yml", ".moon", "rush.json", "dune-workspace",
         "cabal.project", "stack.yaml", "go.work", "psalm.xml", "phpcs.xml", "grumphp.yml",
         "codeception.yml", "behat.yml", "Rakefile.rb", "devbox.lock", "kustomization.yaml",
         "cabal.project.local", ".bazelversion", "cdk.json", "serverless.yml", ".releaserc",
         ".releaserc.*", ".release-it.*", ".czrc", ".commitlintrc", ".commitlintrc.*",
         "process-compose.yml", "Taskfile.dist.yaml", "docker-bake.json", "*.gradle.kts",
         "gradle/libs.versions.toml", "project/*.scala", "launchSettings.json", "*.proj", "*.cabal",
         "*.opam", ".user.ini", ".htaccess", "phpcs.xml.dist", ".size-limit.*",
         ".dependency-cruiser.*", "plopfile.*", ".hygen.js")},
    {.reason = "runs when you build or test",
     .class = NAMES_WHEN_RUN,
     .exact = true,
     .patterns = PATTERNS("BUILD", "BUCK", "WORKSPACE", "Cask", "Eask", "dune", "configure", "waf",
                          "Kconfig", "*.pro", "*.spec", "build.py", "tasks.py")},
    {.reason = "names programs that a tool or an editor loads",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS(
         "pyproject.toml", "Pipfile", ".pylintrc", "pylintrc", "mypy.ini", ".mypy.ini", ".flake8",
         ".coveragerc", "Cargo.toml", "composer.json", ".bowerrc", "nodemon.json", ".eslintrc",
         ".eslintrc.*", ".prettierrc", ".prettierrc.*", ".babelrc", ".babelrc.*", ".stylelintrc",
         ".stylelintrc.*", ".swcrc", ".nycrc", ".nycrc.*", ".rspec", ".rubocop.yml", "phpstan.neon",
         "phpstan.neon.dist", ".php-cs-fixer*.php", "rector.php", ".clangd", "Snakefile",
         "tools/bazel", ".bazeliskrc", "project.json", "angular.json", "lerna.json",
         "workspace.json", "poetry.toml", ".yardopts", "Steepfile", ".config/dotnet-tools.json",
         ".scalafmt.conf", ".metals", ".bloop", ".tflint.hcl", ".ccls", "compile_commands.json")},
    {.reason = "compiled Python, run instead of its source",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS("*.pyc", "*.pyo", "__pycache__")},
    /* installed packages: any file of them may be loaded */
    {.reason = "code of an installed package",
     .class = NAMES_WHEN_RUN,
     .patterns = PATTERNS("node_modules", "site-packages", "dist-packages", "bower_components",
                          "vendor/bundle", ".yarn/cache", ".yarn/unplugged", ".yarn/sdks", ".eggs",
                          ".cargo/registry", ".cargo/git", "go/pkg/mod")},
    /* They execute nothing, but an agent outside the jail does what they say. */
    {.reason = "instructions that agents follow",
     .class = NAMES_UNUSUAL,
     .exact = true,
     .patterns =
         PATTERNS("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENT.md", "AGENTS.override.md",
                  "GEMINI.md", "QWEN.md", "WARP.md", "CRUSH.md", ".cursorrules", ".windsurfrules",
                  ".clinerules", ".roorules", ".goosehints", ".rules", ".claude/rules",
                  ".github/copilot-instructions.md", ".github/instructions")},
};
const size_t names_row_count = ARRAY_LENGTH(names_rows);

/* Directories at the top of a project that contain no settings that execute anything, or of which
 * the table has the parts that do. */
static const char *const names_known[] = {
    ".adr",          ".angular",    ".astro",        ".build",
    ".cache",        ".changes",    ".changeset",    ".ci",
    ".clinerules",   ".coverage",   ".cxx",          ".dart_tool",
    ".deps",         ".docs",       ".docusaurus",   ".eggs",
    ".expo",         ".git",        ".github",       ".gitlab",
    ".gradle",       ".hypothesis", ".images",       ".ipynb_checkpoints",
    ".kitchen",      ".libs",       ".local",        ".logs",
    ".mypy_cache",   ".next",       ".npm",          ".nuxt",
    ".nyc_output",   ".output",     ".parcel-cache", ".pnpm-store",
    ".pytest_cache", ".pytype",     ".reuse",        ".ruff_cache",
    ".serverless",   ".stack-work", ".svelte-kit",   ".tmp",
    ".trash",        ".turbo",      ".venv",         ".vercel",
    ".vite",         ".vitepress",  ".vuepress",     ".well-known",
    ".zig-cache",
};

const char *names_class_name(enum names_class class)
{
    static const char *const names[] = {"none", "unasked", "when_run", "unusual", "not_judged"};
    return names[class];
}

const char *names_class_words(enum names_class class)
{
    static const char *const words[] = {"", " (unasked)", " (when run)", "", ""};
    return words[class];
}

/* ---- patterns ---- */

static char names_fold(char c, bool exact)
{
    return !exact && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Compares one component of a pattern with one of a path, both ended by '/' or NUL. */
static bool names_match_component(const char *pattern, const char *name, bool exact)
{
    const char *star = NULL, *retry = NULL;
    while (*name && *name != '/') {
        if (*pattern == '*') {
            star = pattern++;
            retry = name;
        } else if (names_fold(*pattern, exact) == names_fold(*name, exact)) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern || *pattern == '/';
}

/* A path as it is judged: the beginnings of its components. */
struct names_path {
    const char *at[COMPONENTS_MAX + 1];
    size_t count;
    const char *home;
    bool above; /* a pattern may be longer */
    /* Which characters the path has, as they are and in lower case: most patterns need another. */
    bool has[UCHAR_MAX + 1], begins[UCHAR_MAX + 1]; /* anywhere; at the beginning of a component */
};

static void names_note_characters(struct names_path *to, const char *path)
{
    bool begins = true;
    for (; path && *path; path++) {
        const unsigned char c[] = {(unsigned char)*path, (unsigned char)names_fold(*path, false)};
        for (size_t i = 0; i < ARRAY_LENGTH(c); i++) {
            to->has[c[i]] = true;
            to->begins[c[i]] |= begins;
        }
        begins = *path == '/';
    }
}

/* Whether a pattern can match: it begins as a component does, or has its first character after a `*` somewhere. */
static bool names_can_match(const char *pattern, bool exact, const struct names_path *path)
{
    bool any = *pattern == '*';
    unsigned char c = (unsigned char)names_fold(pattern[any], exact);
    return c == '\0' || c == '/' || (any ? path->has[c] : path->begins[c]);
}

/* With `above` a path that ends before the pattern matches, too. */
static bool names_match_all(const char *pattern, const char *path, bool exact, bool above)
{
    while (names_match_component(pattern, path, exact)) {
        pattern += strcspn(pattern, "/");
        path += strcspn(path, "/");
        if (!*pattern)
            return true;
        if (!*path)
            return above;
        pattern++;
        path++;
    }
    return false;
}

bool names_match(const char *pattern, const char *path, bool exact)
{
    return names_match_all(pattern, path, exact, false);
}

/* Most patterns differ in the first character. */
static bool names_match_quickly(const char *pattern, const char *path, bool exact, bool above)
{
    return (*pattern == '*' || names_fold(*pattern, exact) == names_fold(*path, exact)) &&
           names_match_all(pattern, path, exact, above);
}

static bool names_match_row(const struct names_row *row, const struct names_path *path)
{
    bool home = row->where == NAMES_HOME;
    if (row->held == NAMES_HELD_NEW || row->held == NAMES_HELD_BARE || (home && !path->home))
        return false;
    for (const char *const *pattern = row->patterns; *pattern; pattern++) {
        if (!names_can_match(*pattern, row->exact, path))
            continue;
        if (home && names_match_quickly(*pattern, path->home, row->exact, path->above))
            return true;
        for (size_t i = 0; i < path->count && !home; i++)
            if (names_match_quickly(*pattern, path->at[i], row->exact, path->above))
                return true;
    }
    return false;
}

/* ---- judging ---- */

static bool names_is_executable(mode_t mode)
{
    return S_ISREG(mode) && (mode & EXECUTABLE);
}

bool names_judge(const char *path, const char *home, mode_t before, mode_t after,
                 struct names_mark *ret_mark)
{
    struct names_path components = {.home = home, .above = S_ISLNK(after)};
    for (const char *at = path; at && components.count < ARRAY_LENGTH(components.at);) {
        components.at[components.count++] = at;
        at = strchr(at, '/');
        at = at ? at + 1 : NULL;
    }
    if (components.count == ARRAY_LENGTH(components.at)) {
        *ret_mark = (struct names_mark){NAMES_NOT_JUDGED, "it is too deep to be judged"};
        return true;
    }
    names_note_characters(&components, path);
    names_note_characters(&components, home);
    for (size_t i = 0; i < names_row_count; i++) {
        const struct names_row *row = &names_rows[i];
        if ((!row->gone && !after) || !names_match_row(row, &components))
            continue;
        *ret_mark = (struct names_mark){row->class, row->reason};
        return true;
    }
    if (!names_is_executable(after) || names_is_executable(before))
        return false;
    *ret_mark = (struct names_mark){NAMES_UNUSUAL, "a new executable file"};
    return true;
}

/* The last `count` components of a path, or NULL. */
static const char *names_last(const char *path, size_t count)
{
    const char *at = path + strlen(path);
    while (at > path && (at[-1] != '/' || --count > 0))
        at--;
    return at > path || count <= 1 ? at : NULL;
}

bool names_judge_end(const char *path, struct names_mark *ret_mark)
{
    for (const struct names_row *row = names_rows; row->class == NAMES_UNASKED; row++) {
        bool judged = row->held == NAMES_NOT_HELD || row->held == NAMES_HELD;
        for (const char *const *pattern = row->patterns;
             judged && row->where == NAMES_ANYWHERE && *pattern; pattern++) {
            size_t count = 1;
            for (const char *c = *pattern; (c = strchr(c, '/')); c++)
                count++;
            const char *end = names_last(path, count);
            if (!end || !names_match_quickly(*pattern, end, row->exact, false))
                continue;
            *ret_mark = (struct names_mark){row->class, row->reason};
            return true;
        }
    }
    return false;
}

bool names_is_package(const char *path)
{
    static const char *const packages[] = {"node_modules/*", "site-packages/*", "dist-packages/*",
                                           "bower_components/*"};
    const char *end = names_last(path, 2);
    for (size_t i = 0; end && i < ARRAY_LENGTH(packages); i++)
        if (names_match(packages[i], end, true))
            return true;
    return false;
}

bool names_is_unknown(const char *path)
{
    if (path[0] != '.' || !strchr(path, '/'))
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(names_known); i++)
        if (names_match(names_known[i], path, true))
            return false;
    return true;
}

/* ---- held names ---- */

bool names_next_held(struct names_held_name *at)
{
    const struct names_row *const end = names_rows + names_row_count;
    if (at->row)
        at->number++;
    else
        at->row = names_rows;
    while (at->row < end && (at->row->held == NAMES_NOT_HELD || !at->row->patterns[at->number])) {
        at->row++;
        at->number = 0;
    }
    at->path = at->row < end ? at->row->patterns[at->number] : NULL;
    return at->path;
}

/* Returns 1 if a name is a held one or a directory above one, -1 if it is inside one, else 0. */
static int names_relation(const char *name, const char *held)
{
    size_t length = strlen(name), held_length = strlen(held);
    if (strncmp(name, held, length) == 0 && (!held[length] || held[length] == '/'))
        return 1;
    return strncmp(name, held, held_length) == 0 && name[held_length] == '/' ? -1 : 0;
}

int names_check(const char *name, struct brig_error *err)
{
    if (name[0] == '/')
        return 0;
    if (str_starts_with(name, ".git/"))
        return brig_fail(
            err, BRIG_E_INVALID, 0,
            "--unprotect: '%s' is in the git directory, which is private as a whole. Use "
            "--unprotect .git for the real one",
            str_shown(name).text);
    const char *inside = NULL;
    for (struct names_held_name at = {0}; names_next_held(&at);) {
        int related = at.row->held == NAMES_HELD_BARE ? 0 : names_relation(name, at.path);
        if (related > 0)
            return 0;
        if (related < 0)
            inside = at.path;
    }
    return inside ? brig_fail(err, BRIG_E_INVALID, 0,
                              "--unprotect: '%s' is inside '%s', which is protected as a whole",
                              str_shown(name).text, inside)
                  : brig_fail(err, BRIG_E_INVALID, 0,
                              "--unprotect: '%s' is not a protected path, such as .git, .vscode or "
                              ".envrc",
                              str_shown(name).text);
}

bool names_is_excepted(const char *const *excepted, size_t count, const char *top, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        const char *one = excepted[i];
        size_t length = strlen(one);
        char whole[PATH_LENGTH_MAX + 1];
        (void)snprintf(whole, sizeof whole, "%s/%s", strcmp(top, "/") == 0 ? "" : top, path);
        if (one[0] == '/'
                ? path_is_beneath(one, whole)
                : strncmp(one, path, length) == 0 && (!path[length] || path[length] == '/'))
            return true;
    }
    return false;
}
