package expression

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// pricer charges for a call before its execution.
type pricer func(m *CostBudget, args []ref.Val)

// pricers returns the cost of function calls by name, in addition to the unit of each node. A
// function that is neither here nor in free cannot be used.
func pricers() map[string]pricer {
	all := map[string]pricer{
		operators.Equals: whole, operators.NotEquals: whole,
		operators.Less: texts, operators.LessEquals: texts, operators.Greater: texts, operators.GreaterEquals: texts,
		operators.Add: addition, operators.In: membership, operators.OldIn: membership, overloads.DeprecatedIn: membership,
		"size": texts, "contains": whole, "indexOf": search, "lastIndexOf": search,
		"replace": replacement, "split": parts, "join": joined, "format": formatted, "validate": validation,
		"lists.range": numbers, "slice": elements, "reverse": elements, "optional.unwrap": elements, "unwrapOpt": elements,
		"flatten": copies, "distinct": pairs, "sort": sorted, "@sortByAssociatedKeys": sorted,
		"sets.contains": products, "sets.equivalent": products, "sets.intersects": products,
		"cel.@mapInsert": insertion,
		// Numbers of any size, and values that must be parsed.
		"quantity": dear(100), "isQuantity": dear(100), "add": dear(50), "sub": dear(50), "compareTo": dear(30), "isGreaterThan": dear(30), "isLessThan": dear(30),
		"semver": dear(20), "isSemver": dear(20), "ip": dear(10), "isIP": dear(10), "ip.isCanonical": dear(20), "cidr": dear(10), "isCIDR": dear(10),
		"containsIP": dear(10), "containsCIDR": dear(10), "masked": dear(10), "url": dear(10), "isURL": dear(10), "timestamp": dear(5), "duration": dear(5),
	}
	for _, name := range []string{
		// Functions that read a whole text or list.
		"startsWith", "endsWith", "charAt", "substring", "trim", "lowerAscii", "upperAscii", "strings.quote",
		"isSorted", "sum", "min", "max", "includes",
		"bool", "bytes", "double", "int", "string", "uint",
		"getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery", "format.named",
	} {
		all[name] = whole
	}
	for _, name := range []string{
		"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds",
	} {
		all[name] = clock
	}
	return all
}

// free returns the functions that cost only the unit of their node: they read one value, of any
// size.
func free() []string {
	return []string{
		operators.LogicalNot, operators.LogicalAnd, operators.LogicalOr, operators.Conditional, operators.NotStrictlyFalse, "__not_strictly_false__",
		operators.Negate, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
		// planner charges for their keys.
		operators.Index, operators.OptIndex, operators.OptSelect,
		"dyn", "type", "first", "last",
		"optional.none", "optional.of", "optional.ofNonZeroValue", "hasValue", "value", "or", "orValue",
		"major", "minor", "patch", "sign", "isInteger", "asInteger", "asApproximateFloat",
		"family", "isGlobalUnicast", "isLinkLocalMulticast", "isLinkLocalUnicast", "isLoopback", "isUnspecified", "prefixLength",
		"format.dns1123Label", "format.dns1123Subdomain", "format.dns1035Label", "format.qualifiedName", "format.dns1123LabelPrefix",
		"format.dns1123SubdomainPrefix", "format.dns1035LabelPrefix", "format.labelValue", "format.uri", "format.uuid", "format.byte",
		"format.date", "format.datetime",
		// Expressions have no authorizer to call them on.
		"path", "group", "resource", "subresource", "namespace", "name", "serviceAccount", "check", "allowed", "reason", "errored", "error",
		"fieldSelector", "labelSelector",
	}
}

// whole charges for functions that read all their arguments.
func whole(m *CostBudget, args []ref.Val) {
	for _, arg := range args {
		m.payFor(arg)
	}
}

// dear charges for functions that read all their arguments and cost at least the given units.
func dear(units uint64) pricer {
	return func(m *CostBudget, args []ref.Val) {
		m.pay(units)
		whole(m, args)
	}
}

// copies charges for functions that copy their argument.
func copies(m *CostBudget, args []ref.Val) {
	for range 4 {
		whole(m, args)
	}
}

// texts charges for texts, and not for the contents of lists and maps.
func texts(m *CostBudget, args []ref.Val) {
	for _, arg := range args {
		m.pay(textUnits(textLength(arg)))
	}
}

func textLength(value ref.Val) int {
	switch value := value.(type) {
	case types.String:
		return len(value)
	case types.Bytes:
		return len(value)
	}
	return 0
}

func text(args []ref.Val, at int) string {
	if at < len(args) {
		if value, isText := args[at].(types.String); isText {
			return string(value)
		}
	}
	return ""
}

// addition charges for copying texts and lists. A list that a macro is building only grows by the
// added elements.
func addition(m *CostBudget, args []ref.Val) {
	texts(m, args)
	if _, grows := args[0].(traits.MutableLister); !grows {
		m.pay(2 * length(args[0]))
	}
	m.pay(2 * length(args[1]))
}

// membership charges for comparing with all elements of a list, or looking up a key of a map.
func membership(m *CostBudget, args []ref.Val) {
	m.payFor(args[0])
	if _, isList := args[1].(traits.Lister); isList {
		m.payFor(args[1])
	}
}

// search charges for a comparison at each position of a text.
func search(m *CostBudget, args []ref.Val) {
	whole(m, args)
	const comparisonsPerUnit = 50
	m.pay(uint64(textLength(args[0])) * uint64(len(text(args, 1))) / comparisonsPerUnit)
}

// replacement charges for the length of the resulting text.
func replacement(m *CostBudget, args []ref.Val) {
	whole(m, args)
	old, found := text(args, 1), strings.Count(text(args, 0), text(args, 1))
	if len(args) == 4 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			found = min(found, int(most))
		}
	}
	m.pay(uint64(found))
	m.pay(textUnits(max(0, found*(len(text(args, 2))-len(old)))))
}

// parts charges for a text for each part.
func parts(m *CostBudget, args []ref.Val) {
	whole(m, args)
	m.pay(uint64(strings.Count(text(args, 0), text(args, 1)) + 1))
}

// joined charges for a separator between elements.
func joined(m *CostBudget, args []ref.Val) {
	whole(m, args)
	m.pay(length(args[0]) * textUnits(len(text(args, 1))+bytesPerUnit))
}

// formatted charges for printing values. Printing sorts keys, copies several times, and may print
// as many digits as the format says.
func formatted(m *CostBudget, args []ref.Val) {
	const each = 1500
	m.pay(each + each*length(args[1]))
	for range 8 {
		whole(m, args)
	}
	digits := strings.FieldsFunc(text(args, 0), func(r rune) bool { return r < '0' || r > '9' })
	for _, number := range digits {
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			n = 1 << 32
		}
		m.pay(n)
	}
}

// validation charges for matching patterns of about a hundred steps.
func validation(m *CostBudget, args []ref.Val) {
	for _, arg := range args {
		m.pay(10 + 20*m.payFor(arg))
	}
}

// numbers charges for creating the given number of elements.
func numbers(m *CostBudget, args []ref.Val) {
	if n, ok := args[0].(types.Int); ok && n > 0 {
		m.payProduct(2, uint64(n))
	}
}

// elements charges for copying a list without the contents of its elements.
func elements(m *CostBudget, args []ref.Val) { m.pay(2 * length(args[0])) }

// pairs charges for comparing each element with each other element.
func pairs(m *CostBudget, args []ref.Val) { m.payProduct(length(args[0]), m.payFor(args[0])) }

// products charges for comparing each element of one list with each element of the other.
func products(m *CostBudget, args []ref.Val) {
	first, second := m.payFor(args[0]), m.payFor(args[1])
	m.payProduct(2*length(args[0]), second)
	m.payProduct(2*length(args[1]), first)
}

func (m *CostBudget) payProduct(a, b uint64) {
	high, product := bits.Mul64(a, b)
	if high > 0 {
		product = ^uint64(0)
	}
	m.pay(product)
}

// sorted charges for a sort: each element is compared about log(n) times.
func sorted(m *CostBudget, args []ref.Val) {
	for _, list := range args {
		m.payProduct(m.payFor(list), uint64(2*bits.Len64(length(list))))
	}
}

// insertion charges for adding to a map that a macro is building: one entry, or the entries of
// another map.
func insertion(m *CostBudget, args []ref.Val) {
	const each = 6
	m.pay(each)
	m.payFor(args[1])
	if len(args) == 2 {
		m.pay(each * length(args[1]))
	}
}

// clock charges for reading a part of a time. A time zone is read from a file.
func clock(m *CostBudget, args []ref.Val) {
	const zone = 1000
	if len(args) > 1 {
		m.payFor(args[1])
		m.pay(zone)
	}
}
