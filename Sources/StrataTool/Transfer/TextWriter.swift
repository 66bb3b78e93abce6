import Foundation
import StoreFiles
import StoreInterface
import StoreModel

/// Writes text to a new file, or to standard output if the path is `-`. The file gets its name when it is complete.
final class TextWriter {
    private let partial: PartialFile?
    /// The path that the file gets; nil for standard output.
    var target: String? { partial?.target }
    private let handle: FileHandle?
    private let console = Console.current
    private var buffer: [UInt8] = []
    private var isClosed = false
    private static let bufferSize = 1 << 16

    /// - Parameters:
    ///   - path: The file to write.
    ///   - existing: Whether a file of that name is replaced. The new file has the same mode.
    ///   - store: The store whose data is written, whose mode a new file gets; nil for text without data of a store.
    init(_ path: String, existing: ExistingFile, dataOf store: String?) throws {
        if path == "-" {
            partial = nil
            handle = nil
            return
        }
        let made = try PartialFile(
            for: URL(fileURLWithPath: path, isDirectory: false), existing: existing, withDataOf: store)
        guard let handle = FileHandle(forWritingAtPath: made.path) else {
            made.discard()
            throw ToolError.failed(
                "\(path) cannot be written: its temporary file cannot be opened. Check the folder's permissions")
        }
        partial = made
        self.handle = handle
    }

    func write(_ text: String) throws {
        buffer += text.utf8
        if buffer.count >= Self.bufferSize { try flush() }
    }

    private func flush() throws {
        guard !buffer.isEmpty else { return }
        if let handle {
            do { try handle.write(contentsOf: Data(buffer)) } catch {
                throw ToolError.failed(
                    "\(partial?.target ?? "the file") cannot be written: \(error.reason). Make room on the disk")
            }
        } else {
            try console.write(String(decoding: buffer, as: UTF8.self))
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Writes the rest, which can fail on a full disk. The file does not have its name yet.
    func complete() throws {
        try flush()
        guard !isClosed else { return }
        try handle?.close()
        isClosed = true
    }

    /// Writes the rest, and gives the file its name.
    func finish() throws {
        try complete()
        try partial?.finish()
    }

    /// Removes the file if it is not complete.
    func discard() {
        try? handle?.close()
        partial?.discard()
    }
}

/// Reads a file line by line.
final class LineReader {
    private let handle: FileHandle
    private let path: String
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    /// The number of the line that was returned last, from 1.
    private(set) var line = 0
    private static let part = 1 << 16

    init(_ path: String) throws {
        self.path = path
        guard let handle = FileHandle(forReadingAtPath: path) else {
            throw ToolError.wrongInput("\(path): cannot be read. Check the path and its permissions")
        }
        self.handle = handle
    }

    deinit { try? handle.close() }

    /// Returns the next line without its end, or nil at the end of the file. Skips empty lines.
    func next() throws -> ArraySlice<UInt8>? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: 0x0A) {
                let found = buffer[start..<end]
                start = end + 1
                line += 1
                if found.isEmpty || found.elementsEqual([0x0D]) {
                    searched = start
                    continue
                }
                return found
            }
            if isAtEnd {
                guard start < buffer.count else { return nil }
                defer { start = buffer.count }
                line += 1
                return buffer[start...]
            }
            buffer.removeFirst(start)
            start = 0
            searched = buffer.count
            do {
                let more = try handle.read(upToCount: Self.part) ?? Data()
                if more.isEmpty { isAtEnd = true }
                buffer += more
            } catch {
                throw ToolError.wrongInput("\(path): cannot be read: \(error.reason). Check the disk")
            }
        }
    }
}
