/* SPDX-License-Identifier: MIT */
/* The table of names, the most specific reason first. */
#include "held/risk_rows.h"

#include <string.h>

#include "base/cleanup.h"
#include "held/names.h"

#define COMPONENTS_MAX 256 /* of a path; deeper ones do not count */
#define PATTERNS(...) ((const char *const[]){__VA_ARGS__, NULL})

const struct risk_row risk_rows[] = {
    /* ---- git ---- */
    {"executed by git", RISK_ANYWHERE, false,
     PATTERNS(".git/hooks", "*.git/hooks", ".git/modules/*/hooks", ".githooks", ".git-hooks",
              "githooks", "git-hooks")},
    {"settings that git obeys", RISK_ANYWHERE, true,
     PATTERNS(".git/config", ".git/config.worktree", "*.git/config", ".git/info/attributes",
              ".git/modules/*/config", ".gitconfig", ".lfsconfig")},
    {"settings that git obeys", RISK_HOME, true,
     PATTERNS(".config/git", ".git-templates", ".git-template", ".git_template", ".gittemplates")},
    {"filters and merge drivers that git runs", RISK_ANYWHERE, true, PATTERNS(".gitattributes")},
    {"submodules that git fetches", RISK_ANYWHERE, true, PATTERNS(".gitmodules")},
    /* Without a HEAD no directory is a repository, whatever its other files are called. */
    {"part of a git repository", RISK_ANYWHERE, true, PATTERNS(".git", "HEAD")},

    /* ---- shells ---- */
    {"runs in every new shell", RISK_HOME, false,
     PATTERNS(".bashrc", ".bashrc.*", ".bash_aliases", ".bash_functions", ".bash_completion",
              ".bash_completion.d", ".config/bash", ".local/share/bash-completion", ".zshrc",
              ".zshrc.*", ".zshenv", ".zshenv.*", ".zsh", ".oh-my-zsh", ".config/zsh", ".zinit",
              ".zplug", ".antigen", ".p10k.zsh", ".config/fish", ".local/share/fish/vendor_*",
              ".kshrc", ".mkshrc", ".shrc", ".shinit", ".cshrc", ".tcshrc", ".xonshrc",
              ".config/xonsh", ".config/nushell", ".elvish", ".config/elvish", ".config/powershell",
              ".config/starship.toml", ".fzf", ".fzf.bash", ".fzf.zsh")},
    {"runs at the next login", RISK_HOME, false,
     PATTERNS(".profile", ".profile.*", ".bash_profile", ".bash_login", ".bash_logout", ".zprofile",
              ".zlogin", ".zlogout", ".login", ".logout", ".xprofile", ".xinitrc", ".xserverrc",
              ".xsession", ".xsessionrc", ".Xsession", ".pam_environment", ".environment",
              ".config/environment.d", ".config/autostart", ".config/autostart-scripts",
              ".config/plasma-workspace", ".config/upstart", ".config/i3", ".config/sway",
              ".config/hypr", ".config/openbox", ".config/awesome", ".config/bspwm",
              ".config/sxhkd", ".xbindkeysrc")},
    {"keys that type a command in a shell", RISK_HOME, false,
     PATTERNS(".inputrc", ".config/readline")},
    {"commands that a terminal runs", RISK_HOME, false,
     PATTERNS(".tmux.conf", ".tmux", ".config/tmux", ".screenrc", ".byobu", ".config/kitty",
              ".config/alacritty", ".config/wezterm", ".wezterm.lua", ".config/ghostty",
              ".config/terminator", ".config/zellij")},
    {"runs in a directory that you enter", RISK_ANYWHERE, false,
     PATTERNS(".direnv", ".autoenv", ".autoenv.zsh", ".env.zsh", ".rvmrc", ".mise.toml",
              "mise.toml", "mise.*.toml", ".mise.*.toml", ".mise", ".config/mise",
              ".config/mise.toml", ".tool-versions")},
    {"variables that programs load", RISK_ANYWHERE, false,
     PATTERNS(".env", ".env.local", ".env.*.local", ".flaskenv")},

    /* ---- services, the desktop ---- */
    {"a service or timer that systemd starts", RISK_HOME, false,
     PATTERNS(".config/systemd", ".local/share/systemd", ".config/user-tmpfiles.d")},
    {"a service that the session starts", RISK_HOME, false,
     PATTERNS(".local/share/dbus-1", ".config/dbus-1", ".config/supervisor", ".pm2")},
    {"a job that cron starts", RISK_ANYWHERE, false,
     PATTERNS("crontab", ".crontab", "cron.d", "cron.hourly", "cron.daily", "cron.weekly",
              "cron.monthly", "anacrontab")},
    {"a launcher that the desktop starts", RISK_ANYWHERE, false, PATTERNS("*.desktop")},
    {"decides which program opens a file", RISK_HOME, false,
     PATTERNS(".local/share/applications", ".local/share/mime", ".config/mimeapps.list", ".mailcap",
              ".mime.types", ".lessfilter", ".lesskey", ".config/lesskey", ".config/ranger",
              ".config/lf", ".config/vifm", ".config/xdg-desktop-portal", ".local/share/kservices5",
              ".local/share/kio", ".local/share/nautilus", ".local/share/nemo",
              ".local/share/gnome-shell")},
    {"a program that the browser starts", RISK_ANYWHERE, false,
     PATTERNS("NativeMessagingHosts", "native-messaging-hosts")},

    /* ---- programs in the search path ---- */
    {"a program in the search path", RISK_HOME, false,
     PATTERNS(".local/bin", "bin", ".bin", ".cargo/bin", ".cargo/env", ".go/bin", "go/bin",
              ".npm-global", ".npm-packages", ".yarn/bin", ".bun/bin", ".deno/bin",
              ".local/share/pnpm", ".pyenv", ".rbenv", ".nvm", ".asdf", ".volta", ".sdkman",
              ".rustup", ".fnm", ".local/share/mise", ".local/share/fnm", ".local/pipx",
              ".local/share/pipx", ".local/share/uv", ".krew", ".local/opt", ".dotnet/tools",
              ".composer/vendor", ".gem", ".jenv", ".nix-profile", ".nix-defexpr",
              ".config/nixpkgs", ".config/home-manager")},
    {"a program that the project's tools start", RISK_ANYWHERE, false,
     PATTERNS("node_modules/.bin", ".venv/bin", "venv/bin", ".virtualenv/bin", "env/bin",
              ".tox/*/bin", ".nox/*/bin", "vendor/bin", ".venv/Scripts", "venv/Scripts",
              ".bundle/bin")},

    /* ---- editors ---- */
    {"tasks and settings of an editor", RISK_ANYWHERE, true,
     PATTERNS("*.code-workspace", ".vs", "*.sublime-project", ".fleet", ".nova", ".theia",
              ".gitpod.yml", ".settings", ".classpath", ".project", "nbproject", "*.iml", "*.ipr",
              ".cursor-server", ".vscode-server", ".vscode-remote")},
    {"executed by an editor", RISK_ANYWHERE, false,
     PATTERNS(".exrc", ".nvim.lua", ".nvimrc", ".vimrc", "_vimrc", ".lvimrc", ".local.vimrc",
              ".vim", ".gvimrc", ".vimspector.json", ".dir-locals.el", ".dir-locals-2.el", ".helix",
              ".projections.json", ".kakrc", ".ycm_extra_conf.py", ".lazy.lua", ".neoconf.json",
              ".emacs.desktop")},
    {"executed by an editor", RISK_HOME, false,
     PATTERNS(".config/nvim", ".local/share/nvim", ".config/vim", ".emacs", ".emacs.el", ".emacs.d",
              ".config/emacs", ".spacemacs", ".spacemacs.d", ".doom.d", ".config/doom", ".nanorc",
              ".config/nano", ".config/helix", ".config/kak", ".config/micro", ".config/Code",
              ".config/VSCodium", ".config/Code - OSS", ".config/Cursor", ".config/zed",
              ".local/share/zed", ".config/sublime-text", ".config/JetBrains",
              ".local/share/JetBrains", ".ideavimrc", ".config/Windsurf", ".config/lapce")},

    /* ---- agents ---- */
    {"settings of an agent", RISK_ANYWHERE, true,
     PATTERNS(".claude.json", ".claude/plugins", ".claude/.mcp.json", "mcp.json",
              ".aider.conf.yaml", ".aider.model.settings.yml", ".continue", ".continuerc.json",
              ".cline", ".kilocode", ".amp", ".goose", ".crush.json", "crush.json", ".junie",
              ".kiro", ".trae", ".augment", ".factory", ".openhands", ".agents", ".copilot",
              ".plandex", "opencode.jsonc", ".vibe", ".kimi", ".iflow", ".zencoder")},
    {"settings of an agent", RISK_HOME, true,
     PATTERNS(".config/opencode", ".config/goose", ".config/claude", ".config/Claude",
              ".config/crush", ".config/amp", ".config/github-copilot", ".config/mcp", ".codeium",
              ".config/zed/prompts")},
    {"commands and skills that an agent runs", RISK_ANYWHERE, false,
     PATTERNS(".claude/commands", ".claude/skills", ".claude/agents", ".claude/output-styles",
              ".claude/statusline*", ".github/prompts", ".github/chatmodes", ".github/agents",
              ".github/skills", "SKILL.md")},
    /* They execute nothing, but an agent outside the jail does what they say. */
    {"instructions that agents follow", RISK_ANYWHERE, false,
     PATTERNS("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENT.md", "AGENTS.override.md",
              "GEMINI.md", "QWEN.md", "WARP.md", "CRUSH.md", ".cursorrules", ".windsurfrules",
              ".clinerules", ".roorules", ".goosehints", ".rules", ".claude/rules",
              ".github/copilot-instructions.md", ".github/instructions")},

    /* ---- settings of programs ---- */
    {"settings of a package manager", RISK_ANYWHERE, true,
     PATTERNS(".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins",
              ".pnpmfile.cjs", ".pnpmfile.mjs", ".pnp.cjs", ".pnp.loader.mjs",
              "pnpm-workspace.yaml", "bunfig.toml", ".bunfig.toml", "pip.conf", ".pypirc",
              "uv.toml", ".condarc", ".cargo/config.toml", ".cargo/config",
              ".cargo/credentials.toml", ".bundle/config", ".gemrc", "rust-toolchain.toml",
              "rust-toolchain", ".mvn", "nuget.config", "NuGet.Config", ".sdkmanrc")},
    {"settings of a package manager", RISK_HOME, true,
     PATTERNS(".config/pip", ".pip", ".pydistutils.cfg", ".config/pnpm", ".config/yarn",
              ".config/uv", ".config/go", ".m2", ".gradle/init.d", ".gradle/init.gradle",
              ".gradle/init.gradle.kts", ".gradle/gradle.properties", ".sbt", ".ivy2",
              ".config/pypoetry", ".config/composer", ".composer", ".cabal/config",
              ".stack/config.yaml", ".opam", ".hex", ".nuget", ".config/NuGet", ".config/nix")},
    {"settings that can start programs", RISK_HOME, true,
     PATTERNS(".docker", ".config/containers", ".kube", ".aws", ".config/gcloud", ".azure",
              ".config/gh", ".config/glab-cli", ".config/hub", ".curlrc", ".config/curlrc",
              ".wgetrc", ".netrc", ".hgrc", ".config/hg", ".subversion", ".config/jj",
              ".jjconfig.toml", ".ssh", ".gnupg", ".config/brig", ".config/direnv", ".direnvrc",
              ".config/ripgreprc", ".ackrc", ".my.cnf", ".psqlrc", ".sqliterc", ".muttrc", ".mutt",
              ".config/mutt", ".config/neomutt", ".mailrc", ".forward", ".procmailrc",
              ".fetchmailrc", ".msmtprc", ".mbsyncrc", ".config/mpv", ".terraformrc", ".vagrant.d",
              ".ansible.cfg", ".bazelrc", ".config/helm", ".config/lazygit", ".config/k9s")},
    {"runs when an interpreter or debugger starts", RISK_ANYWHERE, false,
     PATTERNS(".gdbinit", ".lldbinit", ".pdbrc", ".pdbrc.py", ".pythonrc", ".pythonrc.py",
              ".pythonstartup", "ipython_config.py", "jupyter_*config.py", ".Rprofile", ".Renviron",
              ".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".octaverc", ".iex.exs", ".perldb",
              ".psysh.php", ".replrc", ".lldbinit-*", ".utoprc", ".radare2rc")},
    {"runs when an interpreter or debugger starts", RISK_HOME, false,
     PATTERNS(".ipython", ".jupyter", ".local/share/jupyter", ".julia/config", ".config/gdb",
              ".config/ghc", ".ghc", ".config/R", ".config/irb", ".config/pry", ".config/pudb")},

    /* ---- Python ---- */
    {"runs whenever Python starts", RISK_ANYWHERE, false,
     PATTERNS("*.pth", "sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize",
              "pyvenv.cfg", "python*._pth", "*.egg-link")},
    {"compiled Python, run instead of its source", RISK_ANYWHERE, false,
     PATTERNS("*.pyc", "*.pyo", "__pycache__")},

    /* ---- hooks, CI ---- */
    {"executed by git", RISK_ANYWHERE, false,
     PATTERNS(".pre-commit-config.yaml", ".pre-commit-config.yml", ".pre-commit-hooks.yaml",
              "lefthook.yml", "lefthook.yaml", ".lefthook.yml", "lefthook-local.yml", ".lefthook",
              ".overcommit.yml", ".lintstagedrc*", ".huskyrc*", ".simple-git-hooks.*",
              ".captain-hook.json", "captainhook.json", "prek.toml")},
    {"executed by continuous integration", RISK_ANYWHERE, false,
     PATTERNS(".github/workflows", ".github/actions", ".gitlab-ci.yml", ".gitlab-ci.yaml",
              ".gitlab/ci", ".circleci", "Jenkinsfile", "Jenkinsfile.*", ".jenkins",
              "azure-pipelines.yml", "azure-pipelines.yaml", ".azure-pipelines", ".azuredevops",
              ".travis.yml", "appveyor.yml", ".appveyor.yml", ".drone.yml", ".drone.star",
              ".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", "bitbucket-pipelines.yml",
              ".buildkite", ".cirrus.yml", ".cirrus.star", ".teamcity", "cloudbuild.yaml",
              "cloudbuild.yml", "buildspec.yml", "buildspec.yaml", ".forgejo", ".gitea", ".tekton",
              ".semaphore", "codefresh.yml", ".build.yml", ".builds", ".dagger", "dagger.json",
              "action.yml", "action.yaml", "netlify.toml", "vercel.json", "amplify.yml", "fly.toml",
              "render.yaml", "wrangler.toml")},

    /* ---- builds and tests ---- */
    {"runs when you build or test", RISK_ANYWHERE, false,
     PATTERNS(
         "Makefile", "makefile", "GNUmakefile", "BSDmakefile", "Makefile.*", "*.mk", "*.mak",
         "justfile", "Justfile", ".justfile", "*.just", "CMakeLists.txt", "*.cmake",
         "CMakePresets.json", "CMakeUserPresets.json", "configure", "configure.ac", "configure.in",
         "*.m4", "autogen.sh", "bootstrap.sh", "meson.build", "meson_options.txt", "meson.options",
         "*.ninja", "SConstruct", "SConscript", "wscript", "waf", "xmake.lua", "premake*.lua",
         "Tupfile", "*.pro", "*.pri", "build.gradle", "build.gradle.kts", "settings.gradle",
         "settings.gradle.kts", "gradlew", "gradlew.bat", "gradle.properties", "gradle/wrapper",
         "buildSrc", "build-logic", "*.gradle", "pom.xml", "build.xml", "mvnw", "mvnw.cmd",
         "build.sbt", "*.sbt", "build.sc", "build.mill", "build.rs", "build.zig", "build.zig.zon",
         "Package.swift", "mix.exs", "rebar.config", "dune", "dune-project", "Setup.hs", "*.nimble",
         "*.rockspec", "setup.py", "setup.cfg", "conftest.py", "noxfile.py", "tox.ini",
         "pytest.ini", "tasks.py", "fabfile.py", "dodo.py", "pavement.py", "hatch_build.py",
         "hatch.toml", "build.py", "SConscript.py", "binding.gyp", "*.gyp", "*.gypi", "Rakefile",
         "rakefile", "*.rake", "Gemfile", "*.gemspec", "Guardfile", "Capfile", "Brewfile",
         "Fastfile", "Podfile", "Dangerfile", "Thorfile", "Gruntfile.*", "gulpfile.*", "Jakefile*",
         "Cakefile", "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.cts",
         "*.config.mts", ".eslintrc.js", ".eslintrc.cjs", ".prettierrc.js", ".prettierrc.cjs",
         ".prettierrc.mjs", ".babelrc.js", ".babelrc.cjs", ".mocharc.js", ".mocharc.cjs",
         ".mocharc.*", ".stylelintrc.js", ".stylelintrc.cjs", ".storybook", "deno.json",
         "deno.jsonc", "turbo.json", "nx.json", "Taskfile.yml", "Taskfile.yaml", "taskfile.yml",
         "Taskfile.dist.yml", "Earthfile", "Tiltfile", "skaffold.yaml", "Dockerfile",
         "Dockerfile.*", "*.Dockerfile", "Containerfile", "docker-compose*.yml",
         "docker-compose*.yaml", "compose.yml", "compose.yaml", "compose.*.yml", "compose.*.yaml",
         "docker-bake.hcl", "Vagrantfile", "Procfile", "Procfile.*", "WORKSPACE", "WORKSPACE.bazel",
         "MODULE.bazel", "BUILD", "BUILD.bazel", "*.bzl", ".bazelrc", "BUCK", ".buckconfig",
         "pants.toml", "flake.nix", "shell.nix", "default.nix", "devenv.nix", "devbox.json",
         "guix.scm", "*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "*.sln", "*.slnx", "*.props",
         "*.targets", "Directory.Build.*", "global.json", "*.xcodeproj", "*.xcworkspace",
         "*.pbxproj", "project.clj", "deps.edn", "shadow-cljs.edn", "bb.edn", "phpunit.xml",
         "phpunit.xml.dist", "Makefile.PL", "Build.PL", "cpanfile", "*.spec", "debian/rules",
         "PKGBUILD", "APKBUILD", "ansible.cfg")},

    {"names programs that a tool or an editor loads", RISK_ANYWHERE, false,
     PATTERNS("pyproject.toml", "Pipfile", ".pylintrc", "pylintrc", "mypy.ini", ".mypy.ini",
              ".flake8", ".coveragerc", "Cargo.toml", "composer.json", ".bowerrc", "nodemon.json",
              ".eslintrc", ".eslintrc.*", ".prettierrc", ".prettierrc.*", ".babelrc", ".babelrc.*",
              ".stylelintrc", ".stylelintrc.*", ".swcrc", ".nycrc", ".nycrc.*", ".rspec",
              ".rubocop.yml", "phpstan.neon", "phpstan.neon.dist", ".php-cs-fixer*.php",
              "rector.php", ".clangd", ".luarc.json", "Snakefile", "tools/bazel", ".bazeliskrc")},

    /* ---- installed packages: any file of them may be loaded ---- */
    {"code of an installed package", RISK_ANYWHERE, false,
     PATTERNS("node_modules", "site-packages", "dist-packages", "bower_components", "vendor/bundle",
              ".yarn/cache", ".yarn/unplugged", ".yarn/sdks", ".eggs", ".cargo/registry",
              ".cargo/git", "go/pkg/mod")},
};
const size_t risk_row_count = ARRAY_LENGTH(risk_rows);

/* Compares one component of a pattern with one of a path, both ended by '/' or NUL. */
static bool component_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *retry = NULL;
    while (*name && *name != '/') {
        if (*pattern == '*') {
            star = pattern++;
            retry = name;
        } else if (*pattern == *name) {
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

/* With `above` a path that ends before the pattern matches, too. */
static bool matches(const char *pattern, const char *path, bool above)
{
    while (component_matches(pattern, path)) {
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

bool risk_pattern_matches(const char *pattern, const char *path)
{
    return matches(pattern, path, false);
}

/* The beginnings of the components of a path. */
struct components {
    const char *at[COMPONENTS_MAX + 1];
    size_t count;
    bool above; /* a pattern may be longer */
};

static void components_find(const char *path, bool above, struct components *components)
{
    components->count = 0;
    components->above = above;
    for (const char *at = path; at && components->count < ARRAY_LENGTH(components->at);) {
        components->at[components->count++] = at;
        at = strchr(at, '/');
        at = at ? at + 1 : NULL;
    }
}

/* Most patterns differ in the first character. */
static bool matches_quickly(const char *pattern, const char *path, bool above)
{
    return (*pattern == *path || *pattern == '*') && matches(pattern, path, above);
}

static bool matches_anywhere(const char *pattern, const struct components *components)
{
    for (size_t i = 0; i < components->count; i++)
        if (matches_quickly(pattern, components->at[i], components->above))
            return true;
    return false;
}

static bool row_matches(const struct risk_row *row, const struct components *components,
                        const char *home)
{
    if (row->where == RISK_HOME && !home)
        return false;
    for (const char *const *pattern = row->patterns; *pattern; pattern++)
        if (row->where == RISK_HOME ? matches_quickly(*pattern, home, components->above)
                                    : matches_anywhere(*pattern, components))
            return true;
    return false;
}

static const char *find(const char *path, const char *home, bool gone, bool above)
{
    struct components components;
    components_find(path, above, &components);
    /* The guard's names are relative to the top of a granted directory. A directory below it may be
     * opened as a project as well. */
    for (size_t i = 0; i < names_count; i++)
        if (matches_anywhere(names_rows[i].path, &components))
            return names_rows[i].risk;
    for (size_t i = 0; i < risk_row_count; i++)
        if ((risk_rows[i].gone || !gone) && row_matches(&risk_rows[i], &components, home))
            return risk_rows[i].reason;
    return NULL;
}

const char *risk_row_find(const char *path, const char *home, bool gone)
{
    return find(path, home, gone, false);
}

const char *risk_row_find_link(const char *path, const char *home)
{
    return find(path, home, false, true);
}
