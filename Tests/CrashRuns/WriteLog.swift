import Foundation

/// One operation on a file, as written by `recorder.c`.
struct WriteRecord {
    enum Operation: UInt32 {
        case create = 1, write, writeSynced, syncBegin, syncEnd, truncate, rename, link, unlink, makeFolder, exchange, map
    }

    var operation: Operation
    var process: UInt32
    var inode: UInt64
    /// The offset of a write, or the new size of a truncation.
    var offset: UInt64
    var bytes: Data

    /// The names in the record, relative to the recorded folder.
    var names: [String] { bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) } }

    static func read(_ log: URL) throws -> [WriteRecord] {
        let data = try Data(contentsOf: log, options: .alwaysMapped)
        var records: [WriteRecord] = []
        var place = 0
        // The last record may be incomplete, if its process was killed.
        while place + 32 <= data.count {
            func number<T: FixedWidthInteger>(_ offset: Int, _ type: T.Type) -> T {
                data.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(fromByteOffset: place + offset, as: T.self)) }
            }
            let length = Int(number(24, UInt64.self))
            guard place + 32 + length <= data.count else { break }
            guard let operation = Operation(rawValue: number(0, UInt32.self)) else {
                throw CrashRunError("\(log.path): no operation at byte \(place)")
            }
            records.append(
                WriteRecord(
                    operation: operation, process: number(4, UInt32.self), inode: number(8, UInt64.self),
                    offset: number(16, UInt64.self), bytes: data.subdata(in: place + 32..<place + 32 + length)))
            place += 32 + length
        }
        return records
    }
}
