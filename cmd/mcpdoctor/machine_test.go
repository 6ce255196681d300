package main

import (
	"context"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// savedMachine is a machine of which a table was saved, and that answers no question about it.
type savedMachine func(now time.Time) (*scan.Snapshot, error)

func (m savedMachine) Take(_ context.Context, now time.Time) (*scan.Snapshot, error) { return m(now) }

func (savedMachine) Examine(context.Context, *scan.Snapshot, []int, []int) {}

func (savedMachine) Configuration(context.Context, []config.Folder, []config.Named) config.Found {
	return config.Found{}
}

func (savedMachine) Versions(context.Context, *scan.Snapshot, map[int]string) {}
func (savedMachine) Services(context.Context, *scan.Snapshot, []int)          {}
func (savedMachine) Holders(context.Context, *scan.Snapshot, []int)           {}
func (savedMachine) PSS(context.Context, *scan.Snapshot, []int)               {}

// homeMachine is a saved machine with real configuration files.
type homeMachine struct {
	savedMachine
	getenv func(string) string
}

func (m homeMachine) Configuration(ctx context.Context, folders []config.Folder, named []config.Named) config.Found {
	return localMachine{m.getenv}.Configuration(ctx, folders, named)
}
