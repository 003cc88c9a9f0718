//go:build !race

package wire

const checksKept = false
