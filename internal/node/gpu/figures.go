package gpu

// Figure is a metric that dcgm-exporter has by default and GPULoad doesn't.
type Figure struct {
	Name    string // DCGM's
	Counter bool
	Help    string
}

// DCGM's names of metrics. The profiling metrics (PROF) are ratios from 0 to 1.
const (
	smClock        = "DCGM_FI_DEV_SM_CLOCK"
	memClock       = "DCGM_FI_DEV_MEM_CLOCK"
	memTemp        = "DCGM_FI_DEV_MEMORY_TEMP"
	energy         = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
	pcieReplays    = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
	memCopyUtil    = "DCGM_FI_DEV_MEM_COPY_UTIL"
	encoderUtil    = "DCGM_FI_DEV_ENC_UTIL"
	decoderUtil    = "DCGM_FI_DEV_DEC_UTIL"
	fbReserved     = "DCGM_FI_DEV_FB_RESERVED"
	nvlinkTotal    = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
	vgpuLicense    = "DCGM_FI_DEV_VGPU_LICENSE_STATUS"
	remappedUnc    = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
	remappedCorr   = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
	remapFailure   = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
	engineActive   = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
	tensorActive   = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
	dramActive     = "DCGM_FI_PROF_DRAM_ACTIVE"
	pcieSent       = "DCGM_FI_PROF_PCIE_TX_BYTES"
	pcieReceived   = "DCGM_FI_PROF_PCIE_RX_BYTES"
	loadUtil       = "DCGM_FI_DEV_GPU_UTIL"
	loadTemp       = "DCGM_FI_DEV_GPU_TEMP"
	loadPower      = "DCGM_FI_DEV_POWER_USAGE"
	loadMemoryUsed = "DCGM_FI_DEV_FB_USED"
	loadMemoryFree = "DCGM_FI_DEV_FB_FREE"
	loadXID        = "DCGM_FI_DEV_XID_ERRORS"
	uncorrected    = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" // dcgm-exporter doesn't export it by default
)

// Figures lists all Figures, as of dcgm-exporter 4.8's default-counters.csv:
// https://github.com/NVIDIA/dcgm-exporter/blob/main/etc/default-counters.csv
var Figures = []Figure{
	{smClock, false, "The clock of the GPU's multiprocessors, in MHz."},
	{memClock, false, "The clock of the GPU's memory, in MHz."},
	{memTemp, false, "The temperature of the GPU's memory, in degrees Celsius."},
	{energy, true, "The energy that the GPU has used since its driver was loaded, in millijoules."},
	{pcieReplays, true, "How often something was sent again over PCIe."},
	{memCopyUtil, false, "How busy the GPU's memory is, in percent."},
	{encoderUtil, false, "How busy the video encoder is, in percent."},
	{decoderUtil, false, "How busy the video decoder is, in percent."},
	{fbReserved, false, "The GPU's memory that the driver keeps for itself, in MiB."},
	{nvlinkTotal, false, "What goes over all NVLinks of the GPU, as DCGM counts it."},
	{vgpuLicense, false, "Whether a virtual GPU has a license."},
	{remappedUnc, true, "Rows of the memory that were remapped for errors which could not be corrected."},
	{remappedCorr, true, "Rows of the memory that were remapped for errors which were corrected."},
	{remapFailure, false, "Whether a row could not be remapped."},
	{engineActive, false, "The share of time in which the GPU computes, from 0 to 1."},
	{tensorActive, false, "The share of cycles in which tensor cores compute, from 0 to 1."},
	{dramActive, false, "The share of cycles in which the memory sends or receives, from 0 to 1."},
	{pcieSent, false, "What the GPU sends over PCIe, in bytes a second."},
	{pcieReceived, false, "What the GPU receives over PCIe, in bytes a second."},
}
