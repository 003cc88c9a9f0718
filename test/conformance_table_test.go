package test

// The end of a task whose essential container has ended, and of one that never started.
const (
	over    = "task pulled started ended stopped: EssentialContainerExited: Essential container in task exited\n"
	stopped = "task pulled started ended stopped: UserInitiated: seen\n"
)

// inFile is the end of a task whose image is a file, of which only Pintle's agents know.
const inFile = "task *stopped: TaskFailedToStart: Cannot*\nmain: Cannot*"

// conformances are sorted by what they are about. What they want is what Amazon's agent does with Docker, in its own words where these
// aren't the container engine's.
var conformances = []conformance{
	// Exit codes and the order of containers.
	{name: "exit code 0", containers: `[{"name":"main","script":"echo err >&2"}]`, want: over + "main: 0 | err", processes: true},
	{name: "exit code 3", containers: `[{"name":"main","script":"exit 3"}]`, want: over + "main: 3", processes: true},
	{name: "no newline", containers: `[{"name":"main","script":"echo -n last"}]`, want: over + "main: 0 | last", processes: true},
	{
		name:       "non essential ends first",
		containers: `[{"name":"main","script":"sleep 3; exit 4"},{"name":"side","essential":false,"script":"exit 5"}]`,
		want:       over + "main: 4\nside: 5", processes: true,
	},
	{
		name:       "essential ends the others",
		containers: `[{"name":"main","script":"sleep 2; exit 4"},{"name":"side","essential":false,"script":"trap 'exit 6' TERM; sleep 600 & wait"}]`,
		want:       over + "main: 4\nside: 6", processes: true,
	},
	{
		name: "command not found", words: true,
		containers: `[{"name":"main","entryPoint":["/none"]}]`,
		want:       "task pulled ended stopped: TaskFailedToStart: CannotStartContainerError: *\nmain: CannotStartContainerError: *none*no such file*",
	},
	{
		name:       "no entry point",
		containers: `[{"name":"main","image":"CONFIGURED","user":"0","entryPoint":[""],"command":["/bin/echo","alone"]}]`,
		want:       over + "main: 0 | alone", amazon: inFile,
	},
	{
		name: "command is a directory", words: true,
		containers: `[{"name":"main","entryPoint":["/data"]}]`,
		want:       "task pulled ended stopped: TaskFailedToStart: CannotStartContainerError: *\nmain: CannotStartContainerError: *ermission denied*",
	},
	{
		name: "user not there", words: true,
		containers: `[{"name":"main","script":"id","user":"nobody-here"}]`,
		want:       "task pulled ended stopped: TaskFailedToStart: CannotStartContainerError: *\nmain: CannotStartContainerError: *nobody-here*no matching entries in passwd file*",
	},
	{
		name: "image not there", words: true,
		containers: `[{"name":"main","image":"localhost:1/none:1"}]`,
		want:       "task pulled ended stopped: TaskFailedToStart: CannotPullContainerError: *\nmain: CannotPullContainerError: *localhost:1/none:1*connection refused*",
		amazon:     "task pulled ended stopped: TaskFailedToStart: CannotPullImageManifestError: *\nmain: CannotPullImageManifestError: *connection refused", // it asks for the digest first
	},
	{
		name: "second container cannot start", words: true,
		containers: `[{"name":"main","script":"trap 'exit 8' TERM; sleep 600 & wait"},{"name":"side","entryPoint":["/none"],"dependsOn":[{"containerName":"main","condition":"START"}]}]`,
		want:       "task pulled ended stopped: *Essential container in task exited\nmain: *\nside: CannotStartContainerError: *",
	},
	{
		name:       "depends on success",
		containers: `[{"name":"main","script":"cat /v/f","dependsOn":[{"containerName":"first","condition":"SUCCESS"}],"mountPoints":[{"sourceVolume":"v","containerPath":"/v"}]},{"name":"first","essential":false,"script":"sleep 1; echo first > /v/f","mountPoints":[{"sourceVolume":"v","containerPath":"/v"}]}]`,
		task:       `{"volumes":[{"name":"v"}]}`,
		want:       over + "main: 0 | first\nfirst: 0",
	},
	{
		name:       "depends on success that fails",
		containers: `[{"name":"main","script":"echo no","dependsOn":[{"containerName":"first","condition":"SUCCESS"}]},{"name":"first","essential":false,"script":"exit 9"}]`,
		want:       "task pulled ended stopped: EssentialContainerExited: Essential container in task exited\nfirst: 9\nmain: 143 CannotStartContainerError: dependency graph: *", processes: true,
		amazon: asWanted,
	},
	{
		name:       "depends on complete",
		containers: `[{"name":"main","script":"echo then","dependsOn":[{"containerName":"first","condition":"COMPLETE"}]},{"name":"first","essential":false,"script":"exit 9"}]`,
		want:       over + "first: 9\nmain: 0 | then", processes: true,
	},
	{
		name:       "depends on complete too long",
		containers: `[{"name":"main","script":"echo then","dependsOn":[{"containerName":"first","condition":"COMPLETE"}]},{"name":"first","essential":false,"startTimeout":2,"script":"trap 'exit 9' TERM; sleep 600 & wait"}]`,
		want:       "task pulled ended stopped: EssentialContainerExited: Essential container in task exited\nfirst: 9\nmain: 143 CannotStartContainerError: dependency graph: *", processes: true,
		amazon: asWanted,
	},
	{
		name:       "depends on healthy",
		containers: `[{"name":"main","script":"echo then","dependsOn":[{"containerName":"first","condition":"HEALTHY"}]},{"name":"first","essential":false,"healthCheck":{"command":["CMD-SHELL","true"],"interval":5},"script":"trap 'exit 9' TERM; sleep 600 & wait"}]`,
		want:       over + "first: 9\nmain: 0 | then", processes: true,
	},
	{
		name:       "depends on healthy too long",
		containers: `[{"name":"main","script":"echo then","dependsOn":[{"containerName":"first","condition":"HEALTHY"}]},{"name":"first","essential":false,"startTimeout":2,"healthCheck":{"command":["CMD-SHELL","false"],"interval":5},"script":"trap 'exit 9' TERM; sleep 600 & wait"}]`,
		want:       "task pulled ended stopped: EssentialContainerExited: Essential container in task exited\nfirst: 9\nmain: 143 CannotStartContainerError: dependency graph: *", processes: true,
		amazon: asWanted,
	},
	{
		name:       "restart policy within its period",
		containers: `[{"name":"main","script":"exit 3","restartPolicy":{"enabled":true,"restartAttemptPeriod":60}}]`,
		want:       over + "main: 3", processes: true,
	},
	{
		name:       "chain",
		containers: `[{"name":"a","essential":false,"script":"echo a"},{"name":"b","essential":false,"dependsOn":[{"containerName":"a","condition":"COMPLETE"}],"script":"echo b; exit 2"},{"name":"c","essential":false,"dependsOn":[{"containerName":"b","condition":"COMPLETE"}],"script":"echo c"},{"name":"main","dependsOn":[{"containerName":"c","condition":"SUCCESS"}],"script":"echo main"}]`,
		want:       over + "a: 0 | a\nb: 2 | b\nc: 0 | c\nmain: 0 | main", processes: true,
	},
	{
		name: "several essential that are healthy in turns",
		containers: `[{"name":"a","healthCheck":{"command":["CMD","true"],"interval":5},"dependsOn":[{"containerName":"b","condition":"HEALTHY"}],"script":"trap 'echo a; exit 2' TERM; sleep 600 & wait"},
			{"name":"b","healthCheck":{"command":["CMD-SHELL","test -f /ok"],"interval":5,"retries":1,"startPeriod":60},"script":"trap 'echo b; exit 3' TERM; sleep 2; echo > /ok; sleep 600 & wait"},
			{"name":"main","dependsOn":[{"containerName":"a","condition":"HEALTHY"},{"containerName":"b","condition":"START"}],"script":"exit 4"}]`,
		want: over + "a: 2 | a\nb: 3 | b\nmain: 4", amazon: asWanted,
	},
	{
		name:       "ignored exit code",
		containers: `[{"name":"main","script":"echo x >> /n; grep -c x /n; exit 5","restartPolicy":{"enabled":true,"ignoredExitCodes":[5]}}]`,
		want:       over + "main: 5 | 1",
	},
	// Health and stopping.
	{
		name:       "healthy",
		containers: `[{"name":"main","script":"trap 'exit 7' TERM; sleep 600 & wait","healthCheck":{"command":["CMD","/bin/true"],"interval":5}}]`,
		stopAfter:  "HEALTHY", want: "main is HEALTHY\n" + stopped + "main: 7", processes: true,
	},
	{
		name:       "unhealthy",
		containers: `[{"name":"main","script":"trap 'exit 7' TERM; sleep 600 & wait","healthCheck":{"command":["CMD-SHELL","exit 1"],"interval":5,"retries":1}}]`,
		stopAfter:  "UNHEALTHY", want: "main is UNHEALTHY\n" + stopped + "main: 7", processes: true,
	},
	{
		name:       "stopped gently",
		containers: `[{"name":"main","script":"trap 'echo got it; exit 7' TERM; echo up; sleep 600 & wait"}]`,
		stopAfter:  "up", want: stopped + "main: 7 | up; got it", processes: true,
	},
	{
		name:       "stopped deaf",
		containers: `[{"name":"main","script":"trap '' TERM; echo up; while :; do sleep 0.1; done"}]`,
		stopAfter:  "up", want: stopped + "main: 137 | up", processes: true,
	},
	{
		name:       "stopped before a container starts",
		containers: `[{"name":"main","script":"echo no","dependsOn":[{"containerName":"first","condition":"COMPLETE"}]},{"name":"first","essential":false,"script":"trap 'exit 9' TERM; echo up; sleep 600 & wait"}]`,
		stopAfter:  "up", want: "task pulled *ended stopped: UserInitiated: seen\nfirst: 9 | up\nmain:", processes: true,
	},
	{
		name: "stopped in turns", // who waits for others is stopped before them
		containers: `[{"name":"a","stopTimeout":60,"script":"trap 'cat /v/f; exit 5' TERM; sleep 600 & wait","mountPoints":[{"sourceVolume":"v","containerPath":"/v"}]},
			{"name":"b","stopTimeout":60,"dependsOn":[{"containerName":"a","condition":"START"}],"script":"trap 'sleep 1; echo b was first > /v/f; exit 6' TERM; echo up; sleep 600 & wait","mountPoints":[{"sourceVolume":"v","containerPath":"/v"}]}]`,
		task:      `{"volumes":[{"name":"v"}]}`,
		stopAfter: "up", want: stopped + "a: 5 | b was first\nb: 6 | up",
	},
	// Limits.
	{
		name:       "too much memory",
		containers: `[{"name":"main","script":"tail /dev/zero","linuxParameters":{"maxSwap":0}}]`,
		want:       over + "main: 137 OutOfMemoryError: Container killed due to memory usage",
	},
	{
		name:       "too much memory for the task",
		containers: `[{"name":"main","script":"tail /dev/zero"}]`,
		task:       `{"memory":"48"}`,
		want:       over + "main: 137 OutOfMemoryError: Container killed due to memory usage",
	},
	{
		name:       "a child takes too much memory",
		containers: `[{"name":"main","script":"busybox tail /dev/zero 2>/dev/null; exit 5","linuxParameters":{"maxSwap":0}}]`,
		want:       over + "main: 5 OutOfMemoryError: Container killed due to memory usage",
	},
	{
		name:       "shares and quota",
		containers: `[{"name":"main","cpu":128,"memoryReservation":16,"script":"cd /sys/fs/cgroup; cat cpu/cpu.shares cpu/cpu.cfs_quota_us memory/memory.limit_in_bytes memory/memory.soft_limit_in_bytes cpu.weight cpu.max memory.max memory.low 2>/dev/null; true"}]`,
		task:       `{"cpu":"256"}`, want: over + "main: 0 | *",
	},
	{
		name:       "limits of users",
		containers: `[{"name":"main","script":"ulimit -n; ulimit -Hn; ulimit -c; ulimit -u; ulimit -l","ulimits":[{"name":"nofile","softLimit":2048,"hardLimit":4096},{"name":"core","softLimit":0,"hardLimit":0}]}]`,
		want:       over + "main: 0 | 2048; 4096; 0; *",
	},
	{
		name:       "default limits",
		containers: `[{"name":"main","script":"cat /proc/self/limits"}]`,
		want:       over + "main: 0 | *",
	},
	// What a container's processes are.
	{
		name:       "environment",
		containers: `[{"name":"main","environment":[{"name":"A","value":"a b"},{"name":"PATH","value":"/bin:/opt"}],"script":"env | grep -v URI | grep -v URL= | grep -v HOSTNAME | busybox sort"}]`,
		want:       over + "main: 0 | A=a b; AWS_DEFAULT_REGION=us-east-1; AWS_DISABLE_HOST_PREFIX_INJECTION=true; AWS_EXECUTION_ENV=AWS_ECS_EC2; AWS_REGION=us-east-1; HOME=/root; NVIDIA_VISIBLE_DEVICES=void; PATH=/bin:/opt; PWD=/; SHLVL=1",
		amazon:     over + "main: 0 | A=a b; AWS_DEFAULT_REGION=us-east-1; AWS_REGION=us-east-1; HOME=/root; PATH=/bin:/opt; PWD=/; SHLVL=1", // outside EC2 it names no execution environment
	},
	{
		name:       "overrides",
		containers: `[{"name":"main","environment":[{"name":"A","value":"a"},{"name":"B","value":"b"}],"script":"exit 1"}]`,
		run:        `{"overrides":{"containerOverrides":[{"name":"main","command":["echo $A$B$C"],"environment":[{"name":"B","value":"x"},{"name":"C","value":"y"}]}]}}`,
		want:       over + "main: 0 | axy", processes: true,
	},
	{
		name:       "user and directory",
		containers: `[{"name":"main","user":"worker","workingDirectory":"/tmp","script":"id; pwd; echo $HOME"}]`,
		want:       over + "main: 0 | uid=1234(worker) gid=1234(worker) groups=*4321(more)*; /tmp; /home",
	},
	{
		name:       "user by number",
		containers: `[{"name":"main","user":"77:88","script":"id; echo $HOME"}]`,
		want:       over + "main: 0 | uid=77 gid=88*; /",
	},
	{
		name:       "directory not there",
		containers: `[{"name":"main","workingDirectory":"/made/up","script":"pwd"}]`,
		want:       over + "main: 0 | /made/up",
	},
	{
		name: "relative directory", words: true,
		containers: `[{"name":"main","workingDirectory":"made/up","script":"pwd"}]`,
		want:       "task pulled ended stopped: TaskFailedToStart: CannotCreateContainerError: *\nmain: CannotCreateContainerError: *working directory*absolute path*",
	},
	{
		name:       "user and group by name",
		containers: `[{"name":"main","user":"1234:more","script":"id"}]`,
		want:       over + "main: 0 | uid=1234(worker) gid=4321(more)*",
	},
	{
		name:       "what the image says",
		containers: `[{"name":"main","image":"CONFIGURED"}]`,
		stopAfter:  "up",
		want:       stopped + "main: 9 | uid=1234(worker) gid=4321(more)*; /tmp/work; image image /home; from the image; up; interrupted",
		amazon:     inFile,
	},
	{
		name:       "what the definition says instead",
		containers: `[{"name":"main","image":"CONFIGURED","user":"0","workingDirectory":"/made","environment":[{"name":"BOTH","value":"definition"}],"command":["id -u; pwd; echo $FROM $BOTH $HOME"]}]`,
		want:       over + "main: 0 | 0; /made; image definition /root",
		amazon:     inFile,
	},
	{
		name:       "terminal",
		containers: `[{"name":"main","pseudoTerminal":true,"script":"busybox tty; test -t 0 && test -t 1 && echo yes; echo $TERM"}]`,
		want:       over + "main: 0 | /dev/*; yes; xterm",
	},
	{
		name:       "init",
		containers: `[{"name":"main","linuxParameters":{"initProcessEnabled":true},"script":"cat /proc/1/comm; exit 3"}]`,
		want:       over + "main: 3 | docker-init",
	},
	{
		name:       "capabilities",
		containers: `[{"name":"main","script":"grep Cap /proc/self/status; grep NoNew /proc/self/status; grep Seccomp: /proc/self/status"}]`,
		want:       over + "main: 0 | CapInh:*0000000000000000; CapPrm:*00000000a80425fb; CapEff:*00000000a80425fb; CapBnd:*00000000a80425fb; CapAmb:*0000000000000000; NoNewPrivs:*0; Seccomp:*2",
	},
	{
		name:       "capabilities added and dropped",
		containers: `[{"name":"main","linuxParameters":{"capabilities":{"add":["NET_ADMIN"],"drop":["CHOWN"]}},"script":"grep Cap /proc/self/status"}]`,
		want:       over + "main: 0 | *CapEff:*00000000a80435fa; *",
	},
	{
		name:       "capabilities of a user",
		containers: `[{"name":"main","user":"worker","script":"grep Cap /proc/self/status"}]`,
		want:       over + "main: 0 | *CapEff:*0000000000000000; CapBnd:*00000000a80425fb*",
	},
	{
		name:       "no new privileges",
		containers: `[{"name":"main","dockerSecurityOptions":["no-new-privileges"],"script":"grep NoNew /proc/self/status"}]`,
		want:       over + "main: 0 | NoNewPrivs:*1",
	},
	{
		name:       "processes shared",
		containers: `[{"name":"main","script":"for try in 1 2 3 4 5 6 7 8 9; do sleep 3; [ -s /dev/shm/f ] && break; done; cat /dev/shm/f; exit 1"},{"name":"side","essential":false,"script":"ps | grep 'sleep 3' | grep -v grep | busybox wc -l; echo shared > /dev/shm/f"}]`,
		task:       `{"pidMode":"task","ipcMode":"task"}`,
		want:       over + "main: 1 | shared\nside: 0 | *",
		amazon:     asWanted,
	},
	{
		name:       "odd variables and labels",
		containers: `[{"name":"main","dockerLabels":{"a.b":"c"},"environment":[{"name":"EMPTY","value":""},{"name":"EQ","value":"a=b=c"},{"name":"NL","value":"l1\nl2"},{"name":"Q","value":"'\"$HOME"}],"script":"echo \"$EMPTY|$EQ|$NL|$Q\"; sleep 0.5; wget -q -O - $ECS_CONTAINER_METADATA_URI_V4 | grep -o '\"a.b\":\"c\"'"}]`,
		want:       over + `main: 0 | |a=b=c|l1; l2|'"$HOME; "a.b":"c"`,
	},
	// Files.
	{
		name:       "read only",
		containers: `[{"name":"main","readonlyRootFilesystem":true,"script":"(touch /f; echo > /dev/shm/f && echo yes; touch /etc/hosts) 2>&1"}]`,
		want:       over + "main: * | *Read-only file system*; yes*",
	},
	{
		name:       "mounts",
		containers: `[{"name":"main","script":"mount | grep -v ' / ' | grep -v interrupts | while read a b c d e f; do echo $c $e; done | busybox sort"}]`,
		want:       over + "main: 0 | *",
	},
	{
		name:       "devices",
		containers: `[{"name":"main","script":"ls -l /dev | while read mode n user group a b c d e name; do echo $mode $user $group $name; done | busybox sort; echo > /dev/kmsg"}]`,
		want:       over + "main: * | *",
	},
	{
		name:       "proc is masked",
		containers: `[{"name":"main","script":"(cat /proc/kcore | busybox wc -c; cat /proc/keys | busybox wc -c; ls /sys/firmware | busybox wc -l; echo 1 > /proc/sys/kernel/domainname; echo h > /proc/sysrq-trigger) 2>&1"}]`,
		want:       over + "main: * | *0; 0; 0; *Read-only*;*",
	},
	{
		name: "mount in place of all", words: true,
		containers: `[{"name":"main","mountPoints":[{"sourceVolume":"v","containerPath":"/"}],"script":"ls"}]`,
		task:       `{"volumes":[{"name":"v"}]}`,
		want:       "task pulled ended stopped: TaskFailedToStart: CannotCreateContainerError: *\nmain: CannotCreateContainerError: *destination can't be '/'*",
	},
	{
		name:       "memory as a file system",
		containers: `[{"name":"main","linuxParameters":{"tmpfs":[{"containerPath":"/t","size":5,"mountOptions":["mode=700"]}],"sharedMemorySize":7},"script":"df -m /t /dev/shm | grep /; ls -ld /t /dev/shm | while read mode rest; do echo $mode; done"}]`,
		want:       over + "main: 0 | *5*/t; *7*/dev/shm; drwxrwxrwt; drwx------",
	},
	{
		name:       "volumes from",
		containers: `[{"name":"main","volumesFrom":[{"sourceContainer":"first","readOnly":true}],"dependsOn":[{"containerName":"first","condition":"SUCCESS"}],"script":"(cat /data/seed /data/f; touch /data/g; ls /h) 2>&1"},{"name":"first","essential":false,"mountPoints":[{"sourceVolume":"v","containerPath":"/data"},{"sourceVolume":"h","containerPath":"/h","readOnly":true}],"script":"echo written > /data/f"}]`,
		task:       `{"volumes":[{"name":"v"},{"name":"h","host":{"sourcePath":"/usr/share/base-files"}}]}`,
		want:       over + "first: 0\nmain: 0 | from the image; written; *Read-only file system; *",
	},
	{
		name:       "volume of the driver local",
		containers: `[{"name":"main","mountPoints":[{"sourceVolume":"v","containerPath":"/v","readOnly":true}],"script":"ls /v; touch /v/f 2>&1"}]`,
		task: `{"volumes":[{"name":"v","dockerVolumeConfiguration":{"scope":"task","driver":"local","labels":{"a":"b"},
			"driverOpts":{"type":"none","o":"bind","device":"ROUTERS"}}}]}`,
		want: over + "main: 1 | router; touch: /v/f: Read-only file system",
	},
	{
		name: "volume of memory",
		containers: `[{"name":"main","mountPoints":[{"sourceVolume":"v","containerPath":"/v"}],"script":"echo shared > /v/f; df -m /v | grep -c ' 3 '; sleep 3"},
			{"name":"side","essential":false,"dependsOn":[{"containerName":"main","condition":"START"}],"mountPoints":[{"sourceVolume":"v","containerPath":"/w","readOnly":true}],"script":"sleep 1; cat /w/f; touch /w/g 2>&1"}]`,
		task: `{"volumes":[{"name":"v","dockerVolumeConfiguration":{"scope":"task","driver":"local","driverOpts":{"type":"tmpfs","device":"tmpfs","o":"size=3m"}}}]}`,
		want: over + "main: 0 | 1\nside: 1 | shared; touch: /w/g: Read-only file system",
	},
	{
		name:       "volume of another driver",
		containers: `[{"name":"main","mountPoints":[{"sourceVolume":"v","containerPath":"/v"}],"script":"ls /v"}]`,
		task:       `{"volumes":[{"name":"v","dockerVolumeConfiguration":{"scope":"task","driver":"rexray/ebs"}}]}`, want: "ATTRIBUTE",
	},
	{
		name: "shared volume not there", words: true,
		containers: `[{"name":"main","mountPoints":[{"sourceVolume":"conformance-none","containerPath":"/v"}],"script":"ls /v"}]`,
		task:       `{"volumes":[{"name":"conformance-none","dockerVolumeConfiguration":{"scope":"shared","driver":"local"}}]}`,
		want:       "task pulled ended stopped: TaskFailedToStart: CannotCreateContainerError: *\nmain: CannotCreateContainerError: *conformance-none does not exist*",
		amazon:     "task pulled ended stopped: TaskFailedToStart: *conformance-none*does not exist*\nmain:", // its volumes come before its containers
	},
	// Networks.
	{
		name:       "network disabled",
		containers: `[{"name":"main","disableNetworking":true,"script":"ls /sys/class/net"}]`, want: over + "main: 0 | lo",
	},
	{
		name:       "ports",
		containers: `[{"name":"main","portMappings":[{"containerPort":80},{"containerPort":53,"protocol":"udp"},{"containerPort":81,"hostPort":FREE}],"script":"echo up; exit 0"}]`,
		want:       over + "main: 0 0.0.0.0:dynamic->80/tcp 0.0.0.0:dynamic->53/udp 0.0.0.0:fixed->81/tcp | up",
		amazon:     over + "main: 0 *0.0.0.0:dynamic->80/tcp* | up", // in any order
	},
	{
		name:       "range of ports",
		containers: `[{"name":"main","portMappings":[{"containerPortRange":"100-103"},{"containerPort":80}],"script":"echo up"}]`,
		want:       over + "main: 0 0.0.0.0:dynamic->100-103/tcp 0.0.0.0:dynamic->80/tcp | up",
		amazon:     over + "main: 0 *0.0.0.0:dynamic->80/tcp* | up", // in any order
	},
	{
		name:       "ports of the host",
		containers: `[{"name":"main","portMappings":[{"containerPort":9190}],"script":"echo up"}]`,
		task:       `{"networkMode":"host"}`,
		want:       over + "main: 0 | up", processes: true,
	},
	{
		name:       "links",
		containers: `[{"name":"main","links":["web:alias"],"script":"sleep 1; wget -q -O - http://alias/; env | grep ALIAS | grep -v ENV_ | busybox cut -d= -f1 | busybox sort"},{"name":"web","essential":false,"portMappings":[{"containerPort":80}],"script":"trap 'exit 9' TERM; echo linked > /index.html; httpd -f -p 80 -h / & wait"}]`,
		want:       over + "main: 0 | linked; ALIAS_NAME; ALIAS_PORT; ALIAS_PORT_80_TCP; ALIAS_PORT_80_TCP_ADDR; ALIAS_PORT_80_TCP_PORT; ALIAS_PORT_80_TCP_PROTO\nweb: 9 0.0.0.0:dynamic->80/tcp",
	},
	{
		name:       "no network",
		containers: `[{"name":"main","script":"ls /sys/class/net; cat /etc/hosts; cat /etc/resolv.conf | busybox wc -l; wget -q -T 2 -O - $ECS_CONTAINER_METADATA_URI_V4"}]`,
		task:       `{"networkMode":"none"}`, want: over + "main: 139 | lo; *",
	},
	{
		name:       "names",
		containers: `[{"name":"main","hostname":"box","dnsServers":["10.9.8.7"],"dnsSearchDomains":["a.example","b.example"],"extraHosts":[{"hostname":"pear","ipAddress":"10.1.1.1"}],"script":"hostname; cat /etc/hostname; grep pear /etc/hosts; grep -v '#' /etc/resolv.conf | grep -v options; grep -c box /etc/hosts"}]`,
		want:       over + "main: 0 | box; box; 10.1.1.1*pear; *nameserver 10.9.8.7*; 1",
	},
	{
		name:       "files of names",
		containers: `[{"name":"main","dnsServers":["10.9.8.7"],"dnsSearchDomains":["."],"script":"grep -v '#' /etc/resolv.conf | grep -v options; readlink /etc/mtab"}]`,
		want:       over + "main: 0 | nameserver 10.9.8.7; /proc/mounts",
	},
	{
		name:       "own network",
		containers: `[{"name":"main","script":"sleep 1; wget -q -O - http://localhost/; ls /sys/class/net; busybox wc -l < /etc/hosts","portMappings":[{"containerPort":8080}]},{"name":"web","essential":false,"script":"trap 'exit 9' TERM; echo own > /index.html; httpd -f -p 80 -h / & wait"}]`,
		task:       `{"networkMode":"awsvpc"}`, run: `{"networkConfiguration":{"awsvpcConfiguration":{"subnets":["subnet-1"]}}}`,
		want:   over + "main: 0 *interface | own; *lo*\nweb: 9 interface",
		amazon: "MemberOf placement constraint unsatisfied.", // outside EC2 it has no interfaces to give
	},
	{
		name:       "kernel parameters",
		containers: `[{"name":"main","systemControls":[{"namespace":"net.core.somaxconn","value":"77"}],"script":"cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_unprivileged_port_start"}]`,
		want:       over + "main: 0 | 77; 0",
	},
	// Logs.
	{
		name:       "log driver json-file",
		containers: `[{"name":"main","logConfiguration":{"logDriver":"json-file","options":{"max-size":"1m"}},"script":"echo kept"}]`,
		want:       over + "main: 0", processes: true,
	},
	{
		name:       "bytes that are no text",
		containers: `[{"name":"main","script":"printf 'a\\377\\376b\\n'"}]`,
		want:       over + "main: 0 | a\uFFFD\uFFFDb",
	},
	{
		name:       "lines joined by a pattern",
		containers: `[{"name":"main","logOptions":{"awslogs-multiline-pattern":"^[0-9]"},"script":"echo 1 a; echo more; echo 2 b; echo -n end"}]`,
		want:       over + "main: 0 | 1 a\nmore; 2 b\nend", processes: true,
	},
	{
		name:       "lines joined by their time",
		containers: `[{"name":"main","logOptions":{"awslogs-datetime-format":"%Y-%m-%d %H:%M:%S","mode":"non-blocking","max-buffer-size":"1m"},"script":"echo 2026-01-02 03:04:05 a; echo more; echo 2026-01-02 03:04:06 b"}]`,
		want:       over + "main: 0 | 2026-01-02 03:04:05 a\nmore; 2026-01-02 03:04:06 b", processes: true,
	},
	{
		name: "log router",
		containers: `[{"name":"app","logConfiguration":{"logDriver":"awsfirelens","options":{"Name":"stdout","exclude-pattern":"x"}},"script":"echo routed; sleep 1; echo direct | busybox nc -w 1 $FLUENT_HOST $FLUENT_PORT; sleep 1; echo last"},
			{"name":"router","entryPoint":["/opt/router/router"],"essential":false,"memory":64,"firelensConfiguration":{"type":"fluentbit"},"mountPoints":[{"sourceVolume":"r","containerPath":"/opt/router"}]}]`,
		task: `{"volumes":[{"name":"r","host":{"sourcePath":"ROUTERS"}}]}`,
		want: over + "app: 0\nrouter: 0 | configured for app: true ; app-firelens- stdout routed 4; direct: direct; app-firelens- stdout last 4",
	},
	{
		name: "log router in its own network",
		containers: `[{"name":"app","logConfiguration":{"logDriver":"awsfirelens"},"script":"echo routed; sleep 1; echo direct | busybox nc -w 1 $FLUENT_HOST $FLUENT_PORT; echo $FLUENT_HOST; exit 3"},
			{"name":"router","user":"77","entryPoint":["/opt/router/router"],"essential":true,"memory":64,"firelensConfiguration":{"type":"fluentd"},"mountPoints":[{"sourceVolume":"r","containerPath":"/opt/router"}]}]`,
		task:   `{"networkMode":"awsvpc","volumes":[{"name":"r","host":{"sourcePath":"ROUTERS"}}]}`,
		run:    `{"networkConfiguration":{"awsvpcConfiguration":{"subnets":["subnet-1"]}}}`,
		want:   over + "app: 3 interface\nrouter: 0 interface | configured for app: false 0; app-firelens- stdout routed 4; direct: direct; app-firelens- stdout 127.0.0.1 4",
		amazon: "ATTRIBUTE", // the same
	},
	// What the agent serves.
	{
		name:       "credentials",
		containers: `[{"name":"main","script":"sleep 0.5; wget -q -O - http://169.254.170.2$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI | grep -o '\"[A-Za-z]*\":'"}]`,
		task:       `{"taskRoleArn":"arn:aws:iam::000000000000:role/worker"}`, want: over + `main: 0 | *"AccessKeyId":*`,
	},
	{
		name:       "metadata of a container",
		containers: `[{"name":"main","script":"sleep 0.5; wget -q -O - $ECS_CONTAINER_METADATA_URI_V4 | grep -o '\"[A-Za-z.-]*\":' | busybox sort"}]`,
		want:       over + `main: 0 | *"ContainerARN":*`,
		amazon:     over + `main: 0 | *"ContainerARN":*"awslogs-endpoint":*`, // its engine is told where the logs go
	},
	{
		name:       "metadata of a task",
		containers: `[{"name":"main","portMappings":[{"containerPort":80}],"script":"sleep 0.5; wget -q -O - $ECS_CONTAINER_METADATA_URI_V4/task | grep -o '\"[A-Za-z.-]*\":' | busybox sort"}]`,
		task:       `{"cpu":"256","memory":"64"}`, want: over + `main: 0 * | *"TaskARN":*`,
		amazon: over + `main: 0 * | *"TaskARN":*"awslogs-endpoint":*`, // and no image is pulled
	},
	{
		name:       "stats",
		containers: `[{"name":"main","script":"sleep 2; wget -q -O - $ECS_CONTAINER_METADATA_URI_V4/stats | grep -o '\"[a-z_]*_stats\":' | busybox sort"}]`,
		want:       over + `main: 0 | *"cpu_stats":*`,
	},
	// What only Amazon's agent can do isn't placed.
	{
		name:       "another log driver",
		containers: `[{"name":"main","logConfiguration":{"logDriver":"splunk"},"script":"env"}]`, want: "ATTRIBUTE", processes: true,
	},
}
