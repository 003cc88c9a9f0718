// A stand-in for NVIDIA's management library (libnvidia-ml.so.1), for tests on machines without a GPU.
//
// What its GPUs are and answer is in a file "machine" beside the library, which every call reads anew. A line is a key and a value: "power
// 61500" for all GPUs, "3.power 61500" for GPU 3, "3/0.uuid MIG-1" for its slice 0. A value "!15" is an error. What isn't there isn't
// supported. -DOLD leaves out what drivers before R510 lack.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 ret;
enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10 };

// A handle is 1 + 1000 * GPU + (1 + slice, or 0 for the whole).
#define GPU(d) (((long)(d) - 1) / 1000)
#define SLICE(d) (((long)(d) - 1) % 1000 - 1)
#define HANDLE(gpu, slice) ((void *)(1L + 1000L * (gpu) + 1 + (slice)))

static ret find(const char *key, char *value, size_t size) {
	Dl_info self;
	char path[4096], line[4096];
	if (!dladdr((void *)find, &self)) return 999;
	snprintf(path, sizeof path, "%s", self.dli_fname);
	char *slash = strrchr(path, '/');
	snprintf(slash + 1, sizeof path - (slash + 1 - path), "machine");
	FILE *f = fopen(path, "r");
	if (!f) return 999;
	ret r = NOT_SUPPORTED;
	size_t n = strlen(key);
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, key, n) != 0 || line[n] != ' ') continue;
		snprintf(value, size, "%s", line + n + 1);
		r = value[0] == '!' ? (ret)atoi(value + 1) : SUCCESS;
		break;
	}
	fclose(f);
	return r;
}

// text finds a device's value, or that of all GPUs. Only what stands there for a slice is a slice's.
static ret text(void *d, const char *key, char *value, size_t size) {
	char own[200];
	if (SLICE(d) >= 0) {
		snprintf(own, sizeof own, "%ld/%ld.%s", GPU(d), SLICE(d), key);
		return find(own, value, size);
	}
	snprintf(own, sizeof own, "%ld.%s", GPU(d), key);
	ret r = find(own, value, size);
	return r == NOT_SUPPORTED ? find(key, value, size) : r;
}

static ret number(void *d, const char *key, u64 *out) {
	char v[200];
	ret r = text(d, key, v, sizeof v);
	if (r == SUCCESS) *out = strtoull(v, NULL, 10);
	return r;
}

static ret number32(void *d, const char *key, u32 *out) {
	u64 v;
	ret r = number(d, key, &v);
	if (r == SUCCESS) *out = (u32)v;
	return r;
}

static ret count(const char *key, u32 *out) {
	char v[200];
	ret r = find(key, v, sizeof v);
	if (r == SUCCESS) *out = (u32)atoi(v);
	return r;
}

ret nvmlInit_v2(void) {
	char v[200];
	ret r = find("init", v, sizeof v);
	return r == NOT_SUPPORTED ? SUCCESS : r;
}
ret nvmlShutdown(void) { return SUCCESS; }
ret nvmlSystemGetDriverVersion(char *out, u32 size) { return find("driver", out, size); }
ret nvmlDeviceGetCount_v2(u32 *out) { return count("count", out); }
ret nvmlDeviceGetHandleByIndex_v2(u32 i, void **out) {
	char v[200];
	*out = HANDLE(i, -1);
	ret r = text(*out, "handle", v, sizeof v);
	return r == NOT_SUPPORTED ? SUCCESS : r;
}
ret nvmlDeviceGetUUID(void *d, char *out, u32 size) { return text(d, "uuid", out, size); }
ret nvmlDeviceGetName(void *d, char *out, u32 size) { return text(d, "name", out, size); }

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
ret nvmlDeviceGetPciInfo_v3(void *d, struct pci *out) { return text(d, "bus", out->bus_id, sizeof out->bus_id); }

ret nvmlDeviceGetMigMode(void *d, u32 *current, u32 *pending) {
	ret r = number32(d, "mig", current);
	*pending = *current;
	return r;
}
ret nvmlDeviceGetMaxMigDeviceCount(void *d, u32 *out) { return number32(d, "slices", out); }
ret nvmlDeviceGetMigDeviceHandleByIndex(void *d, u32 i, void **out) {
	char v[200];
	*out = HANDLE(GPU(d), (long)i);
	return text(*out, "uuid", v, sizeof v) == NOT_SUPPORTED ? NOT_FOUND : SUCCESS;
}
ret nvmlDeviceGetGpuInstanceId(void *d, u32 *out) { return number32(d, "instance", out); }

ret nvmlDeviceGetNvLinkState(void *d, u32 link, u32 *active) {
	u32 links = 0;
	ret r = number32(d, "links", &links);
	*active = link < links;
	return r;
}
ret nvmlDeviceGetNvLinkRemotePciInfo_v2(void *d, u32 link, struct pci *out) {
	return text(d, "remote", out->bus_id, sizeof out->bus_id);
}

static u64 bytes(void *d, const char *what) {
	u64 v = 0;
	return number(d, what, &v) == SUCCESS ? v : 0;
}
struct memory { u64 total, free, used; };
ret nvmlDeviceGetMemoryInfo(void *d, struct memory *out) { // it counts what is reserved as used
	ret r = number(d, "memory", &out->total);
	out->used = bytes(d, "used") + bytes(d, "reserved");
	out->free = out->total - out->used;
	return r;
}
#ifndef OLD
struct memory2 { u32 version; u64 total, reserved, free, used; };
ret nvmlDeviceGetMemoryInfo_v2(void *d, struct memory2 *out) {
	if (out->version != (sizeof *out | 2 << 24)) return 25;
	ret r = number(d, "memory", &out->total);
	out->used = bytes(d, "used");
	out->reserved = bytes(d, "reserved");
	out->free = out->total - out->used - out->reserved;
	return r;
}
#endif

struct utilization { u32 gpu, memory; };
ret nvmlDeviceGetUtilizationRates(void *d, struct utilization *out) {
	out->memory = 0;
	return number32(d, "utilization", &out->gpu);
}
ret nvmlDeviceGetTemperature(void *d, u32 sensor, u32 *out) { return sensor ? 2 : number32(d, "temperature", out); }
ret nvmlDeviceGetPowerUsage(void *d, u32 *out) { return number32(d, "power", out); }
ret nvmlDeviceGetClockInfo(void *d, u32 type, u32 *out) { return number32(d, type == 1 ? "smclock" : type == 2 ? "memclock" : "-", out); }
ret nvmlDeviceGetTotalEnergyConsumption(void *d, u64 *out) { return number(d, "energy", out); }
ret nvmlDeviceGetPcieReplayCounter(void *d, u32 *out) { return number32(d, "replays", out); }
ret nvmlDeviceGetEncoderUtilization(void *d, u32 *out, u32 *period) { *period = 1; return number32(d, "encoder", out); }
ret nvmlDeviceGetDecoderUtilization(void *d, u32 *out, u32 *period) { *period = 1; return number32(d, "decoder", out); }
ret nvmlDeviceGetTotalEccErrors(void *d, u32 type, u32 counter, u64 *out) {
	return type == 1 && counter == 0 ? number(d, "ecc", out) : NOT_SUPPORTED;
}
ret nvmlDeviceGetRemappedRows(void *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
	*pending = *failed = *uncorrected = 0;
	ret r = number32(d, "remapped", corrected);
	number32(d, "unremapped", uncorrected);
	number32(d, "remapfailed", failed);
	return r;
}

struct field { u32 id, scope; long long timestamp, latency; u32 type; ret r; union { u32 u; u64 ull; double d; } value; };
ret nvmlDeviceGetFieldValues(void *d, int n, struct field *out) {
	for (int i = 0; i < n; i++) {
		char key[40];
		snprintf(key, sizeof key, "field%u", out[i].id);
		out[i].r = number32(d, key, &out[i].value.u);
	}
	return SUCCESS;
}

// The events are a list of "GPU:XID", each of which comes once: "2:79,2:31".
struct event { void *device; u64 type, data; u32 instance, in_instance; };
static int told;
ret nvmlEventSetCreate(void **out) { *out = &told; return SUCCESS; }
ret nvmlEventSetFree(void *set) { return set == &told ? SUCCESS : 2; }
ret nvmlDeviceRegisterEvents(void *d, u64 types, void *set) { return d && types == 8 && set == &told ? SUCCESS : 2; }
#ifdef OLD
ret nvmlEventSetWait(void *set, struct event *out, u32 timeout) {
#else
ret nvmlEventSetWait_v2(void *set, struct event *out, u32 timeout) {
#endif
	char v[1000], *at = v;
	if (set != &told || timeout) return 2;
	if (find("events", v, sizeof v) != SUCCESS) return TIMEOUT;
	for (int i = 0; i < told; i++)
		if (!(at = strchr(at, ',')) || !*++at) return TIMEOUT;
	int gpu;
	if (sscanf(at, "%d:%llu", &gpu, &out->data) != 2) return TIMEOUT;
	out->device = HANDLE(gpu, -1);
	out->type = 8;
	told++;
	return SUCCESS;
}
