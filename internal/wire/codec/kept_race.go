//go:build race

package codec

const checksKept = true
