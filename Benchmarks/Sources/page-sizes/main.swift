import CLMDBBaseline

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

// How many objects should a page have? Compares pages of 32, 64 and 128 objects, and one row per object, on LMDB.
//
// Usage: page-sizes [OBJECTS ...]. Objects have seven columns, two of them strings, about 65 bytes per object. Commits have 500
// objects and no fsync.

func check(_ code: Int32) { if code != 0 { fatalError(String(cString: mdb_strerror(code))) } }

/// A page of `slots` objects, column by column; with one slot it is a row.
struct Shape {
    let slots: Int
    var isRow: Bool { slots == 1 }
    // Header, four columns of 8 bytes, one of a byte, a version of 2 bytes, then the offsets of two strings and their bytes.
    var header: Int { isRow ? 8 : 48 }
    func fixed(_ column: Int) -> Int { header + column * 8 * slots }
    var flags: Int { fixed(4) }
    var versions: Int { flags + slots }
    func offsets(_ text: Int) -> Int { versions + 2 * slots + text * 2 * (slots + 1) }
    var heap: Int { offsets(2) }

    func encode(_ first: Int, _ count: Int, into page: UnsafeMutableRawPointer) -> Int {
        memset(page, 0, heap)
        page.storeBytes(of: count, as: Int.self)
        for i in 0..<count {
            let key = UInt64(first + i)
            page.storeBytes(of: key &* 7919 % 5000, toByteOffset: fixed(0) + 8 * i, as: UInt64.self)
            page.storeBytes(of: Double(key % 50), toByteOffset: fixed(1) + 8 * i, as: Double.self)
            page.storeBytes(of: 7e8 + Double(key), toByteOffset: fixed(2) + 8 * i, as: Double.self)
            page.storeBytes(of: key % 4000, toByteOffset: fixed(3) + 8 * i, as: UInt64.self)
            page.storeBytes(of: UInt8(key & 1), toByteOffset: flags + i, as: UInt8.self)
        }
        var end = 0
        for text in 0..<2 {
            for i in 0..<count {
                page.storeBytes(of: UInt16(end), toByteOffset: offsets(text) + 2 * i, as: UInt16.self)
                let length = text == 0 ? 10 + (first + i) % 8 : 12
                memset(page + heap + end, Int32(97 + (first + i) % 26), length)
                end += length
            }
            page.storeBytes(of: UInt16(end), toByteOffset: offsets(text) + 2 * count, as: UInt16.self)
        }
        return heap + end
    }
}

final class File {
    var environment: OpaquePointer?
    var table: MDB_dbi = 0
    let path = "/tmp/page-sizes.mdb"

    init() {
        unlink(path)
        check(mdb_env_create(&environment))
        check(mdb_env_set_mapsize(environment, 8 << 30))
        check(mdb_env_open(environment, path, UInt32(MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK), 0o600))
        transaction(0) { check(mdb_dbi_open($0, nil, UInt32(MDB_INTEGERKEY), &table)) }
    }

    deinit {
        mdb_env_close(environment)
        unlink(path)
    }

    var bytes: Int {
        var info = stat()
        return stat(path, &info) == 0 ? Int(info.st_size) : 0
    }

    func transaction(_ flags: Int32, _ body: (OpaquePointer?) -> Void) {
        var transaction: OpaquePointer?
        check(mdb_txn_begin(environment, nil, UInt32(flags), &transaction))
        body(transaction)
        if flags == 0 { check(mdb_txn_commit(transaction)) } else { mdb_txn_abort(transaction) }
    }

    func get(_ transaction: OpaquePointer?, _ number: Int) -> MDB_val {
        var number = number
        return withUnsafeMutableBytes(of: &number) { bytes in
            var key = MDB_val(mv_size: 8, mv_data: bytes.baseAddress)
            var value = MDB_val()
            check(mdb_get(transaction, table, &key, &value))
            return value
        }
    }

    func put(_ transaction: OpaquePointer?, number: Int, page: UnsafeMutableRawPointer, count: Int) {
        var number = number
        withUnsafeMutableBytes(of: &number) { bytes in
            var key = MDB_val(mv_size: 8, mv_data: bytes.baseAddress)
            var value = MDB_val(mv_size: count, mv_data: page)
            check(mdb_put(transaction, table, &key, &value, 0))
        }
    }
}

func nanoseconds(_ count: Int, _ body: () -> Void) -> Double {
    let time = ContinuousClock().measure(body).components
    return (Double(time.seconds) * 1e9 + Double(time.attoseconds) / 1e9) / Double(count)
}

func importAll(_ file: File, shape: Shape, objects: Int, page: UnsafeMutableRawPointer) {
    for start in stride(from: 0, to: objects, by: 500) {
        file.transaction(0) { transaction in
            let end = min(start + 500, objects)
            for number in (start / shape.slots)...((end - 1) / shape.slots) {
                let first = number * shape.slots
                let bytes = shape.encode(first, min(shape.slots, end - first), into: page)
                file.put(transaction, number: number, page: page, count: bytes)
            }
        }
    }
}

/// Counts the objects whose first number exceeds 4000 and whose second is below 25.
func scan(_ file: File, _ shape: Shape) -> Int {
    var found = 0
    file.transaction(MDB_RDONLY) { transaction in
        var cursor: OpaquePointer?
        check(mdb_cursor_open(transaction, file.table, &cursor))
        var key = MDB_val()
        var value = MDB_val()
        while mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0 {
            // A value that was found has data.
            let page = UnsafeRawPointer(value.mv_data!)
            for i in 0..<page.loadUnaligned(as: Int.self) {
                let a = page.loadUnaligned(fromByteOffset: shape.fixed(0) + 8 * i, as: UInt64.self)
                let b = page.loadUnaligned(fromByteOffset: shape.fixed(1) + 8 * i, as: Double.self)
                found &+= (a > 4000 ? 1 : 0) & (b < 25 ? 1 : 0)
            }
        }
        mdb_cursor_close(cursor)
    }
    return found
}

func update(
    _ file: File, shape: Shape, objects: Int, page: UnsafeMutableRawPointer, using random: inout SystemRandomNumberGenerator
) {
    for _ in 0..<20 {
        let keys = (0..<500).map { _ in Int.random(in: 0..<objects, using: &random) }
        file.transaction(0) { transaction in
            for key in keys {
                let old = file.get(transaction, key / shape.slots)
                memcpy(page, old.mv_data, old.mv_size)
                page.storeBytes(of: 1, toByteOffset: shape.fixed(0) + 8 * (key % shape.slots), as: UInt64.self)
                file.put(transaction, number: key / shape.slots, page: page, count: old.mv_size)
            }
        }
    }
}

func run(_ shape: Shape, _ objects: Int) {
    let page = UnsafeMutableRawPointer.allocate(byteCount: 1 << 16, alignment: 16)
    defer { page.deallocate() }
    let size = shape.encode(0, shape.slots, into: page)
    var random = SystemRandomNumberGenerator()
    var times: [[Double]] = [[], [], [], []]
    var bytes = 0
    for _ in 0..<5 {
        let file = File()
        times[0].append(nanoseconds(objects) { importAll(file, shape: shape, objects: objects, page: page) })
        bytes = file.bytes
        let keys = (0..<100_000).map { _ in Int.random(in: 0..<objects, using: &random) }
        var sum = 0.0
        times[1].append(
            nanoseconds(keys.count) {
                file.transaction(MDB_RDONLY) { transaction in
                    for key in keys {
                        let found = UnsafeRawPointer(file.get(transaction, key / shape.slots).mv_data!)  // Found, so it has data.
                        sum += found.loadUnaligned(fromByteOffset: shape.fixed(1) + 8 * (key % shape.slots), as: Double.self)
                    }
                }
            })
        var found = 0
        times[2].append(nanoseconds(objects) { found = scan(file, shape) })
        precondition(found > objects / 20 && sum > 0, "the scan must find its tenth")
        times[3].append(nanoseconds(10_000) { update(file, shape: shape, objects: objects, page: page, using: &random) })
    }
    let medians = times.map { String((($0.sorted()[2]) * 10).rounded() / 10) }
    let name = shape.isRow ? "one row per object" : "\(shape.slots) slots"
    let cells = [name, "\(objects)", "\(size)"] + medians + [String(Double(bytes * 10 / objects) / 10)]
    print("| " + cells.joined(separator: " | ") + " |")
}

print("| page | objects | bytes per page | import ns | point read ns | scan ns | update ns | file bytes per object |")
print("| --- | --- | --- | --- | --- | --- | --- | --- |")
let sizes = CommandLine.arguments.dropFirst().compactMap { Int($0) }
for objects in sizes.isEmpty ? [100_000, 1_000_000] : sizes {
    for slots in [1, 32, 64, 128] { run(Shape(slots: slots), objects) }
}
