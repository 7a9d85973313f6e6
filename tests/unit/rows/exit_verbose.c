// SPDX-License-Identifier: Apache-2.0
//
// Row exit: what THRUM_CACHE_VERBOSE=1 has said at the end goes to standard error as it was at the start, or nowhere. A
// program that closes all descriptors and opens files of its own finds in them what it wrote.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "child.h"

enum { FILES = 1100 };
static char folder[] = "/tmp/thrum-row-exit-XXXXXX";

static void name_file(char *path, size_t size, int number) {
    snprintf(path, size, "%s/%d", folder, number);
}

static void fill_descriptors(void) {
    char path[64];
    for (int i = 0; i < FILES; i++) {
        name_file(path, sizeof path, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd == -1)
            break;
        if (write(fd, "mine\n", 5) != 5)
            _exit(CHECK_EXIT_PREMISE);
    }
}

// As a daemon does it: the standard ones stay, or are other files from now on.
static void run_as_daemon(int standard_too) {
    run_thread(do_nothing, NULL);
    CHECK_SYS(syscall(SYS_close_range, standard_too ? 0 : 3, ~0u, 0));
    fill_descriptors();
    exit(0);
}

static int remove_files(void) {
    char path[64];
    struct stat status;
    int foreign = 0;
    for (int i = 0; i < FILES; i++) {
        name_file(path, sizeof path, i);
        if (stat(path, &status) == 0)
            foreign += status.st_size != 5;
        unlink(path);
    }
    rmdir(folder);
    return foreign;
}

static void files_keep_their_own(int standard_too) {
    struct rlimit limit;
    CHECK_SYS(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max < 2 * FILES ? limit.rlim_max : 2 * FILES;
    CHECK_SYS(setrlimit(RLIMIT_NOFILE, &limit));
    check_with_env("THRUM_CACHE_VERBOSE", "1");
    CHECK(mkdtemp(folder) != NULL, "mkdtemp: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0)
        run_as_daemon(standard_too);
    int status = wait_child(pid), foreign = remove_files();
    expect_exit(status, 0);
    CHECK(foreign == 0, "%d files have something of thrum's in them", foreign);
}
static void closes_all_but_standard(void) {
    files_keep_their_own(0);
}
static void closes_all(void) {
    files_keep_their_own(1);
}

// Closed from the start: its number is the first file's.
static void has_no_standard_error(void) {
    static const char *const marker = "THRUM_ROW_NO_STDERR";
    if (getenv(marker) == NULL) {
        int kept = dup(STDERR_FILENO);
        CHECK_SYS(kept);
        setenv("THRUM_CACHE_VERBOSE", "1", 1);
        setenv(marker, "1", 1);
        pid_t pid = fork();
        CHECK_SYS(pid);
        if (pid == 0) {
            close(STDERR_FILENO);
            execl("/proc/self/exe", check_argv[0], "has_no_standard_error", (char *)NULL);
            _exit(errno == ENOEXEC ? CHECK_EXIT_CANNOT : 9);
        }
        expect_exit(wait_child(pid), 0);
        return;
    }
    if (mkdtemp(folder) == NULL)
        _exit(8);
    pid_t pid = fork();
    if (pid == 0) {
        run_thread(do_nothing, NULL);
        fill_descriptors();
        exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    _exit(remove_files() == 0 && status == 0 ? 0 : 7);
}

// What a new process says on standard error that runs this case with one more variable: up to size bytes.
static void hear(const char *name, const char *variable, const char *value, char *said, size_t size) {
    int ends[2], status = 0;
    size_t length = 0;
    CHECK_SYS(pipe(ends));
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        setenv(variable, value, 1);
        setenv("THRUM_ROW_INNER", "1", 1);
        dup2(ends[1], STDERR_FILENO);
        execl("/proc/self/exe", check_argv[0], name, (char *)NULL);
        _exit(9);
    }
    close(ends[1]);
    for (ssize_t more; (more = read(ends[0], said + length, size - 1 - length)) > 0;)
        length += (size_t)more;
    said[length] = '\0';
    close(ends[0]);
    waitpid(pid, &status, 0);
    expect_exit(status, 0);
}

// By another end than exit and _exit.
static void at_quick_exit_too(void) {
    char said[4096];
    if (getenv("THRUM_ROW_INNER") != NULL) {
        run_thread(do_nothing, NULL);
        quick_exit(0);
    }
    hear("at_quick_exit_too", "THRUM_CACHE_VERBOSE", "1", said, sizeof said);
    CHECK(!under_thrum() || strstr(said, ": created 1, ") != NULL, "it said: %s", said);
}

// One line, of this process and not of those that it starts, if it is the one that was started under thrum.
static void misspelt_variables(void) {
    static const char words[] = "is in the environment, but this library has no such variable; ";
    char said[4096], number[16];
    if (getenv("THRUM_ROW_INNER") != NULL)
        return;
    unsetenv("THRUM_CACHE_PROGRAM");
    hear("misspelt_variables", "THRUM_CACHE_MAXAGE", "3", said, sizeof said);
    CHECK(!under_thrum() || strstr(said, "thrum: THRUM_CACHE_MAXAGE is") != NULL, "it said: %s", said);
    CHECK(!under_thrum() || strstr(said, "did you mean THRUM_CACHE_MAX_AGE?\n") != NULL, "it said: %s", said);
    hear("misspelt_variables", "THRUM_CACHE_MODE", "3", said, sizeof said); // a former one
    CHECK(!under_thrum() || strstr(said, "libthrum-cache(7) lists them\n") != NULL, "it said: %s", said);
    for (const char *const *known =
             (const char *const[]){"VERBOSE", "PRESSURE", "TOTAL", "MIN_REST", "MAX_IDLE", "MAX_AGE",
                                   "THREAD_SECONDS", "TRIM_AFTER", "WIPE_STACK", "DIR", NULL};
         *known != NULL; known++) {
        char name[32];
        snprintf(name, sizeof name, "THRUM_CACHE_%s", *known);
        hear("misspelt_variables", name, "1", said, sizeof said);
        CHECK(strstr(said, words) == NULL, "it said: %s", said);
    }
    snprintf(number, sizeof number, "%d", (int)getpid());
    setenv("THRUM_CACHE_PROGRAM", number, 1);
    hear("misspelt_variables", "THRUM_CACHE_MAXAGE", "3", said, sizeof said);
    CHECK(strstr(said, words) == NULL, "a child said: %s", said);
}

static const struct check_case cases[] = {
    {"closes_all_but_standard", closes_all_but_standard, HOLDS_WHEN_SKIPPED},
    {"closes_all", closes_all, HOLDS_WHEN_SKIPPED},
    {"has_no_standard_error", has_no_standard_error, HOLDS_WHEN_SKIPPED},
    {"at_quick_exit_too", at_quick_exit_too, HOLDS_WHEN_SKIPPED},
    {"misspelt_variables", misspelt_variables, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
