// AF_NETLINK: what processes do, told to who listens (NETLINK_CONNECTOR), and families by name (NETLINK_GENERIC).
#include "probe.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void option(int fd, int name, const char *what)
{
    int value = -1;
    socklen_t len = sizeof value;
    SHOW(getsockopt(fd, SOL_SOCKET, name, &value, &len));
    printf("%s: %d\n", what, value);
}

static void making(void)
{
    section("making");
    int fd = SHOW(socket(AF_NETLINK, SOCK_STREAM, NETLINK_GENERIC));
    fd = WORKS(socket(AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR));
    option(fd, SO_TYPE, "SO_TYPE"), option(fd, SO_PROTOCOL, "SO_PROTOCOL"), option(fd, SO_DOMAIN, "SO_DOMAIN");
    struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    SHOW(bind(fd, (struct sockaddr *)&at, sizeof at));
    socklen_t len = sizeof at;
    SHOW(getsockname(fd, (struct sockaddr *)&at, &len));
    printf("groups %u, own port: %d\n", at.nl_groups, at.nl_pid == (unsigned)getpid());
    close(fd);
    fd = SHOW(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC));
    option(fd, SO_TYPE, "SO_TYPE");
    close(fd);
}

static int listener(void)
{
    int fd = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR);
    struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    bind(fd, (struct sockaddr *)&at, sizeof at);
    return fd;
}

static void ask(int fd, int wish)
{
    struct {
        struct nlmsghdr head;
        struct cn_msg message;
        int wish;
    } __attribute__((packed)) all = {{sizeof all, NLMSG_DONE, 0, 0, 0}, {{CN_IDX_PROC, CN_VAL_PROC}, 5, 9, 4, 0}, wish};
    SHOW(send(fd, &all, sizeof all, 0));
}

static void number(const char *what, pid_t pid, pid_t child)
{
    printf(" %s %s", what, pid == child ? "child" : pid == getpid() ? "own" : "other");
}

// The events about a child that have come; answers, too.
static void events(int fd, pid_t child)
{
    usleep(20000);
    unsigned char bytes[256];
    struct sockaddr_nl from;
    socklen_t len = sizeof from;
    int count;
    while ((count = recvfrom(fd, bytes, sizeof bytes, MSG_DONTWAIT, (void *)&from, &len)) > 0) {
        struct nlmsghdr *head = (void *)bytes;
        struct cn_msg *message = NLMSG_DATA(head);
        struct proc_event *event = (void *)message->data;
        // All of them begin with a process, but the birth of one does with its parent.
        int is_fork = event->what == PROC_EVENT_FORK;
        pid_t pid = is_fork ? event->event_data.fork.child_pid : event->event_data.exec.process_pid;
        if (event->what != PROC_EVENT_NONE && pid != child)
            continue;
        printf("%d from %u %u, kind %d, message %u %u of %u, what %#x:", count, from.nl_pid, from.nl_groups,
               head->nlmsg_type, message->id.idx, message->id.val, message->len, event->what);
        switch (event->what) {
        case PROC_EVENT_NONE:
            printf(" error %u ack %u", event->event_data.ack.err, message->ack);
            break;
        case PROC_EVENT_FORK:
            number("parent", event->event_data.fork.parent_pid, child);
            number("its process", event->event_data.fork.parent_tgid, child);
            number("process", event->event_data.fork.child_tgid, child);
            break;
        case PROC_EVENT_UID:
        case PROC_EVENT_GID:
            printf(" %u %u", event->event_data.id.r.ruid, event->event_data.id.e.euid);
            break;
        case PROC_EVENT_COMM:
            printf(" %.16s", event->event_data.comm.comm);
            break;
        case PROC_EVENT_COREDUMP:
            number("parent", event->event_data.coredump.parent_pid, child);
            break;
        case PROC_EVENT_EXIT:
            printf(" %#x signal %d", event->event_data.exit.exit_code, event->event_data.exit.exit_signal);
            number("parent", event->event_data.exit.parent_pid, child);
            break;
        default:
            number("process", event->event_data.exec.process_tgid, child);
        }
        puts("");
    }
    printf("end: %s\n", strerrorname_np(errno));
}

static void processes(void)
{
    section("processes");
    int fd = listener();
    ask(fd, PROC_CN_MCAST_LISTEN);
    events(fd, 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "spoon");
        setsid();
        setresgid(8, 9, 10);
        setresuid(0, 0, 0);
        setresuid(5, 6, 7);
        _exit(3);
    }
    ended("child", child);
    events(fd, child);
    if ((child = fork()) == 0) {
        execl("/proc/self/exe", "netlink", "quit", NULL);
        _exit(1);
    }
    ended("executing", child);
    events(fd, child);
    if ((child = fork()) == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        abort();
    }
    ended("aborting", child);
    events(fd, child);
    ask(fd, 7);
    events(fd, 0);
    ask(fd, PROC_CN_MCAST_IGNORE);
    if ((child = fork()) == 0)
        _exit(0);
    ended("unheard", child);
    events(fd, child);
    close(fd);
}

struct request {
    struct nlmsghdr head;
    struct genlmsghdr generic;
    char data[64];
};

// Sends a command with an attribute; what comes back is in `bytes`, and its length is told.
static int command(int fd, int family, int number, int kind, const void *data, int len, unsigned char *bytes)
{
    struct request request = {{0, family, NLM_F_REQUEST, 7, 0}, {number, 1, 0}, ""};
    struct nlattr *attribute = (void *)request.data;
    attribute->nla_type = kind, attribute->nla_len = 4 + len;
    memcpy(attribute + 1, data, len);
    request.head.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) + (kind ? NLMSG_ALIGN(4 + len) : 0);
    send(fd, &request, request.head.nlmsg_len, 0);
    int count = recv(fd, bytes, 1024, 0);
    struct nlmsghdr *head = (void *)bytes;
    if (head->nlmsg_type == NLMSG_ERROR)
        printf("refused: %s\n", strerrorname_np(-*(int *)NLMSG_DATA(head)));
    else
        printf("%d bytes\n", count);
    return head->nlmsg_type == NLMSG_ERROR ? 0 : count;
}

static void families(void)
{
    section("families");
    unsigned char bytes[1024];
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), family = 0;
    int count = command(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, "TASKSTATS", 10, bytes);
    for (int at = 20; at < count;) {
        struct nlattr *attribute = (void *)(bytes + at);
        printf("attribute %d of %d\n", attribute->nla_type & NLA_TYPE_MASK, attribute->nla_len);
        if (attribute->nla_type == CTRL_ATTR_FAMILY_ID)
            family = *(unsigned short *)(attribute + 1);
        at += NLA_ALIGN(attribute->nla_len);
    }
    command(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, "nobody", 7, bytes);
    command(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, "", 0, bytes);
    command(fd, GENL_ID_CTRL, 99, 0, "", 0, bytes);
    for (int kind = 1; kind < 3; kind++) {
        unsigned own = getpid(), nobody = 4000000;
        if (command(fd, family, TASKSTATS_CMD_GET, kind, &own, 4, bytes)) {
            struct nlattr *outer = (void *)(bytes + 20), *first = outer + 1, *second = first + 2;
            struct taskstats *stats = (void *)(second + 1);
            printf("%d %d: %d %d, %d %d; version %d\n", outer->nla_type & NLA_TYPE_MASK, outer->nla_len,
                   first->nla_type, first->nla_len, second->nla_type, second->nla_len, stats->version);
            printf("%.16s user %u, own number: %d, parent's: %d\n", stats->ac_comm, stats->ac_uid,
                   stats->ac_pid == own, stats->ac_ppid == (unsigned)getppid());
        }
        command(fd, family, TASKSTATS_CMD_GET, kind, &nobody, 4, bytes);
        command(fd, family, TASKSTATS_CMD_GET, kind, "x", 1, bytes);
    }
    command(fd, family, TASKSTATS_CMD_GET, 0, "", 0, bytes);
    if (setresuid(1000, 1000, 1000) == 0) {
        section("without rights");
        unsigned own = getpid();
        command(fd, family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID, &own, 4, bytes);
        command(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, "TASKSTATS", 10, bytes);
        int events = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_CONNECTOR), one = 1;
        struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
        SHOW(bind(events, (struct sockaddr *)&at, sizeof at));
        SHOW(setsockopt(events, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &one, sizeof one));
    }
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "quit") == 0)
        return 9;
    setvbuf(stdout, NULL, _IOLBF, 0);
    making();
    processes();
    families();
    return 0;
}
