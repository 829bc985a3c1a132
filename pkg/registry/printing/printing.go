// Package printing prints tables, with the parts that clients need in every table.
package printing

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
)

// Table prints an object, or each object of a list, as a row that contains the object. what names
// them in the error about an object of another type.
func Table[T runtime.Object](what string, object, options runtime.Object, columns []metav1.TableColumnDefinition, cells func(T) []any) (*metav1.Table, error) {
	out := &metav1.Table{}
	if meta.IsListType(object) {
		out.Rows = slices.Grow(out.Rows, meta.LenList(object))
	}
	add := func(obj runtime.Object) error {
		one, ok := obj.(T)
		if !ok {
			return fmt.Errorf("printing a table of %s: got a %T", what, obj)
		}
		out.Rows = append(out.Rows, Row(cells(one), obj))
		return nil
	}
	if err := eachItem(object, add); err != nil {
		return nil, err
	}
	copyListMeta(out, object)
	return Headed(out, options, columns), nil
}

// TextTable works like Table, for cells that are all text: write sets one text for each column.
// Equal texts in consecutive rows share one value, which saves memory in tables of thousands of
// rows.
func TextTable[T runtime.Object](what string, object, options runtime.Object, columns []metav1.TableColumnDefinition, write func(one T, cells []string)) (*metav1.Table, error) {
	text, above := make([]string, len(columns)), make([]any, len(columns))
	return Table(what, object, options, columns, func(one T) []any {
		clear(text)
		write(one, text)
		cells := make([]any, len(columns))
		for i, is := range text {
			if was, ok := above[i].(string); ok && was == is {
				cells[i] = above[i]
			} else {
				cells[i] = is
			}
		}
		above = cells
		return cells
	})
}

// Row returns a row of a table. The endpoint requires metadata in every row, and converts the
// object to the group's version if the client asks for it.
func Row(cells []any, object runtime.Object) metav1.TableRow {
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: object}}
}

// Headed adds the columns to a table, unless the client already has them from an earlier event.
func Headed(table *metav1.Table, options runtime.Object, columns []metav1.TableColumnDefinition) *metav1.Table {
	if given, ok := options.(*metav1.TableOptions); !ok || !given.NoHeaders {
		table.ColumnDefinitions = columns
	}
	return table
}

// Age returns the time since the creation of an object.
func Age(clock clock.PassiveClock, created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(clock.Since(created.Time).Round(time.Second))
}

// eachItem calls f for every item of a list, or for the object itself.
func eachItem(object runtime.Object, f func(runtime.Object) error) error {
	if meta.IsListType(object) {
		return meta.EachListItem(object, f)
	}
	return f(object)
}

// copyListMeta copies the metadata that clients need for paging and watching.
func copyListMeta(out *metav1.Table, object runtime.Object) {
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
		out.Continue = list.GetContinue()
		out.RemainingItemCount = list.GetRemainingItemCount()
		return
	}
	if single, err := meta.CommonAccessor(object); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
}
