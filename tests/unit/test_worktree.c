/* SPDX-License-Identifier: MIT */
/* Files of git that name a repository: what is believed of them. */
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/gitfile.h"
#include "cli/worktree.h"
#include "tap.h"

static void write_text(const char *path, const char *text)
{
    autofile FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0)
        tap_diag("cannot write %s", path);
}

static const char *gitdir_of(const char *text, char path[GITFILE_PATH_SIZE])
{
    return gitfile_parse_gitdir(text, strlen(text), path) ? path : "refused";
}

static const char *worktree_of(const char *text, char path[GITFILE_PATH_SIZE])
{
    return gitfile_parse_worktree(text, strlen(text), path) ? path : "refused";
}

static void test_links(void)
{
    char path[GITFILE_PATH_SIZE];
    tap_is_str(gitdir_of("gitdir: ../x/.git/modules/y\n", path), "../x/.git/modules/y",
               "a .git file names a path");
    tap_is_str(gitdir_of("gitdir: /a b\r\n", path), "/a b", "which may have blanks in it");
    tap_is_str(gitdir_of("gitdir: ", path), "refused", "no path is refused");
    tap_is_str(gitdir_of("gitdir:/a\n", path), "refused", "so is another form");
    tap_is_str(gitdir_of("gitdir: /a\n/b\n", path), "refused", "so are two lines");
    tap_ok(!gitfile_parse_gitdir("gitdir: /a\0b\n", 13, path), "so is a NUL");
    char text[GITFILE_PATH_SIZE + 16];
    memset(text, 'x', sizeof text);
    tap_ok(gitfile_parse_path(text, GITFILE_PATH_SIZE - 1, path) &&
               !gitfile_parse_path(text, GITFILE_PATH_SIZE, path),
           "a path has a limit, and one more byte is refused");
}

static void test_config(void)
{
    char path[GITFILE_PATH_SIZE];
    tap_is_str(worktree_of("[core]\n\tbare = false\n\tworktree = ../../../sub\n", path),
               "../../../sub", "core.worktree is found");
    tap_is_str(worktree_of("[CORE] WorkTree=\"a # b\" ; c\n", path), "a # b",
               "in any case, on the section's line, with quotes and a comment");
    tap_is_str(worktree_of("[core]\nworktree = a\nworktree = b\\\\c  \n", path), "b\\c",
               "the last one counts, with its escapes");
    tap_is_str(worktree_of("[core \"x\"]\nworktree = a\n", path), "refused",
               "another section's is not meant");
    tap_is_str(worktree_of("[remote \"a]b\"]\n worktree = a\n", path), "refused",
               "nor one with a bracket in its name");
    tap_is_str(worktree_of("[core]\nworktree = a\n[include]\npath = x\n", path), "refused",
               "what includes another file is refused");
    tap_is_str(worktree_of("[includeIf \"gitdir:/\"]\npath = x\n[core]\nworktree = a\n", path),
               "refused", "also on a condition");
    tap_is_str(worktree_of("[core]\nworktree = a\\\nb\n", path), "refused",
               "a value that goes on is refused");
    tap_is_str(worktree_of("[core]\nx = y\\\nworktree = a\n", path), "refused",
               "and what continues another line is no name");
    tap_is_str(worktree_of("[core]\nworktree\n", path), "refused", "a name without a value too");
    tap_is_str(worktree_of("[core", path), "refused", "so is an open bracket");
    tap_is_str(worktree_of("", path), "refused", "and nothing at all");
}

static void make_repository(const char *path)
{
    char name[256];
    static const char *const directories[] = {"", "/objects", "/refs"};
    for (size_t i = 0; i < ARRAY_LENGTH(directories); i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, directories[i]);
        (void)mkdir(name, 0700);
    }
    (void)snprintf(name, sizeof name, "%s/HEAD", path);
    write_text(name, "ref: refs/heads/main\n");
}

static struct worktree find_in(const char *path)
{
    struct worktree worktree = {0};
    autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    worktree_find(fd, geteuid(), &worktree);
    return worktree;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static void test_linked(void)
{
    make_repository("main.git");
    make_repository("other.git");
    (void)mkdir("main.git/worktrees", 0700);
    (void)mkdir("main.git/worktrees/w", 0700);
    (void)mkdir("w", 0700);
    tap_is_int(find_in("w").kind, WORKTREE_NONE, "without a .git there is nothing to find");
    write_text("w/.git", "gitdir: ../main.git/worktrees/w\n");
    write_text("main.git/worktrees/w/commondir", "../..\n");
    tap_is_int(find_in("w").kind, WORKTREE_FOREIGN, "a repository must name the directory back");
    write_text("main.git/worktrees/w/gitdir", "../../../w/.git\n");
    struct worktree found = find_in("w");
    tap_ok(found.kind == WORKTREE_LINKED && ends_with(found.common, "/main.git") &&
               ends_with(found.git_dir, "/main.git/worktrees/w"),
           "if it does, the repository is found");
    (void)mkdir("x", 0700);
    write_text("x/.git", "gitdir: ../main.git/worktrees/w\n");
    tap_is_int(find_in("x").kind, WORKTREE_FOREIGN, "another directory cannot borrow the link");
    write_text("main.git/worktrees/w/commondir", "../../../other.git\n");
    tap_is_int(find_in("w").kind, WORKTREE_FOREIGN, "nor can commondir name another repository");
    (void)unlink("main.git/worktrees/w/commondir");
    (void)!symlink("../../HEAD", "main.git/worktrees/w/commondir");
    tap_is_int(find_in("w").kind, WORKTREE_FOREIGN, "nor be a symbolic link");
    (void)unlink("w/.git");
    (void)!symlink("../x/.git", "w/.git");
    tap_is_int(find_in("w").kind, WORKTREE_NONE, "a .git that is a symbolic link is no such file");
}

static void test_submodule(void)
{
    make_repository("sub.git");
    (void)mkdir("sub", 0700);
    write_text("sub/.git", "gitdir: ../sub.git\n");
    tap_is_int(find_in("sub").kind, WORKTREE_FOREIGN, "a repository without core.worktree is not");
    write_text("sub.git/config", "[core]\n\tworktree = ../sub\n");
    struct worktree found = find_in("sub");
    tap_ok(found.kind == WORKTREE_LINKED && strcmp(found.common, found.git_dir) == 0,
           "with it, a submodule's repository is found");
    write_text("sub.git/commondir", ".\n");
    tap_is_int(find_in("sub").kind, WORKTREE_LINKED, "also while another run protects it");
    write_text("sub.git/config", "[core]\n\tworktree = ../w\n");
    tap_is_int(find_in("sub").kind, WORKTREE_FOREIGN, "one of another directory is not");
    struct worktree worktree = {0};
    write_text("sub.git/config", "[core]\n\tworktree = ../sub\n");
    autoclose int fd = open("sub", O_PATH | O_DIRECTORY | O_CLOEXEC);
    worktree_find(fd, geteuid() + 1, &worktree);
    tap_is_int(worktree.kind, WORKTREE_FOREIGN, "nor is one that somebody else owns");
    char big[GITFILE_LINK_MAX + 2];
    memset(big, '/', sizeof big);
    memcpy(big, "gitdir: ", 8);
    memcpy(big + sizeof big - 12, "../sub.git\n", 12);
    write_text("sub/.git", big);
    tap_is_int(find_in("sub").kind, WORKTREE_FOREIGN, "a .git file has a limit");
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info, (void)flag, (void)walk;
    return remove(path);
}

int main(void)
{
    char scratch[] = "/tmp/brig-worktree.XXXXXX";
    if (!mkdtemp(scratch) || chdir(scratch) < 0)
        return 1;
    test_links();
    test_config();
    test_linked();
    test_submodule();
    (void)nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
