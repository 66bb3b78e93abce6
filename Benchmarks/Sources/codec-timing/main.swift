import PageCodec
import StoreInterface

// Measures the page codec on pages of 64 objects of seven columns, two of them strings. The figures are medians of 15 rounds.
// An argument limits the run to the lines that begin with it.

let entity = EntitySchema(
    name: "Track",
    columns: [
        ColumnSchema(name: "title", type: .string), ColumnSchema(name: "isrc", type: .string),
        ColumnSchema(name: "playCount", type: .int64), ColumnSchema(name: "rating", type: .double),
        ColumnSchema(name: "added", type: .date), ColumnSchema(name: "isLoved", type: .bool),
        ColumnSchema(name: "artist", type: .reference, isOptional: true, destination: 0),
    ])
let schema = StoreSchema(entities: [entity])
let layout = try PageLayout(entity, schemaNumber: 1)
let pages = 500

func value(_ key: UInt64, _ column: ColumnIndex) -> Value {
    switch column {
    case 0: .string("Title of song \(key)")
    case 1: .string("USRC1\(1_000_000 + key)")
    case 2: .int(Int64(key &* 7919 % 5000))
    case 3: .double(Double(key % 50) / 10)
    case 4: .double(7e8 + Double(key))
    case 5: .bool(key % 3 == 0)
    default: .reference(ObjectKey(rawValue: key % 4000 + 64))
    }
}

func makeLayer(_ columns: [ColumnIndex], _ kind: RowKind, every: Int) -> Layer {
    let changes = LayerBuilder(schema: schema)
    for key in stride(from: UInt64(64), to: UInt64(64 * (pages + 1)), by: every) {
        let object = ObjectKey(rawValue: key)
        if kind == .insert {
            changes.insert(columns.map { value(key, $0) }, entity: 0, key: object)
        } else {
            changes.update(Dictionary(uniqueKeysWithValues: columns.map { ($0, value(key + 1, $0)) }), entity: 0, key: object)
        }
    }
    return changes.finish(as: kind == .insert ? 1 : 2)
}

func layerPages(_ layer: Layer) -> [LayerPage] {
    (1...PageNumber(rawValue: UInt64(pages))).compactMap { layer.entity(0)?.page($0) }
}

func measure(_ name: String, per count: Int, unit: String, _ body: () throws -> Int) throws {
    if CommandLine.arguments.count > 1, !name.hasPrefix(CommandLine.arguments[1]) { return }
    var times: [Double] = []
    var sink = 0
    for _ in 0..<15 {
        let time = try ContinuousClock().measure { sink &+= try body() }
        times.append(Double(time.components.attoseconds) / 1e9 / Double(count))
    }
    times.sort()
    print("\(name): \((times[7] * 10).rounded() / 10) ns \(unit) (least \((times[0] * 10).rounded() / 10)), sink \(sink & 0xFF)")
}

func withPages(_ bytes: [[UInt8]], check: ObjectPage.Check, _ body: (ObjectPage) throws -> Int) throws -> Int {
    var sum = 0
    for page in bytes {
        sum &+= try page.withUnsafeBytes { try body(ObjectPage($0, layout: layout, check: check)) }
    }
    return sum
}

let inserts = layerPages(makeLayer([0, 1, 2, 3, 4, 5, 6], .insert, every: 1))
var encoded: [[UInt8]] = []
for changes in inserts {
    encoded.append(try PageMerge(old: nil, changes: changes, layout: layout).withBytes { Array($0) })
}
print("page of 64 objects: \(encoded[0].count) bytes")

try measure("encode fresh", per: pages * 64, unit: "an object") {
    try inserts.reduce(0) { $0 &+ (try PageMerge(old: nil, changes: $1, layout: layout).byteCount) }
}
for (name, column) in [("number", 2), ("Bool", 5), ("string", 0)] as [(String, ColumnIndex)] {
    let updates = layerPages(makeLayer([column], .update, every: 64))
    try measure("update one \(name)", per: pages, unit: "a page") {
        var sum = 0
        for (old, changes) in zip(encoded, updates) {
            sum &+= try old.withUnsafeBytes {
                try PageMerge(old: ObjectPage($0, layout: layout, check: .checksum), changes: changes, layout: layout).byteCount
            }
        }
        return sum
    }
}
try measure("open, header", per: pages, unit: "a page") { try withPages(encoded, check: .header) { $0.presence.nonzeroBitCount } }
try measure("open, checksum", per: pages, unit: "a page") {
    try withPages(encoded, check: .checksum) { $0.presence.nonzeroBitCount }
}
try measure("open, full", per: pages, unit: "a page") { try withPages(encoded, check: .full) { $0.presence.nonzeroBitCount } }
for (name, column) in [("string", 0), ("number", 2), ("date", 4), ("Bool", 5), ("reference", 6)] as [(String, ColumnIndex)] {
    try measure("value, \(name)", per: pages * 64, unit: "a value") {
        try withPages(encoded, check: .header) { page in
            var sum = 0
            for slot in 0..<64 { if case .null = try page.value(slot, column) { sum += 1 } }
            return sum
        }
    }
}
let predicates: [(String, StorePredicate)] = [
    ("number > n", .compare(2, .greater, to: .int(4000))), ("date < d", .compare(4, .less, to: .double(7e8 + 9000))),
    ("Bool", .compare(5, .equal, to: .bool(true))), ("string == s", .compare(1, .equal, to: .string("USRC11000100"))),
    ("string contains", .string(0, .contains, pattern: "99", sensitivity: .sensitive)),
    ("string hasPrefix, any case", .string(0, .hasPrefix, pattern: "TITLE OF SONG 9", sensitivity: .insensitive)),
    ("number in 4", .isIn(2, [.int(1), .int(2), .int(3), .int(4)])),
    ("number and date", .and([.compare(2, .greater, to: .int(4000)), .compare(4, .less, to: .double(7e8 + 9000))])),
]
for (name, predicate) in predicates {
    let compiled = CompiledPredicate(predicate)
    try measure("mask, \(name)", per: pages * 64, unit: "a row") {
        try withPages(encoded, check: .header) { try compiled.mask(of: $0, number: 1).nonzeroBitCount }
    }
}
