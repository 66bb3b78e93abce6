import Foundation

/// The files of the repository that this test was compiled from.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// All Swift files of the repository, including nested packages.
    static let swiftFiles: [SourceFile] = ["Sources", "Tests", "Examples", "Benchmarks", "fuzz"].flatMap {
        files(under: $0, endingIn: "swift")
    }

    /// The Swift files of the library and of the emulation that the benchmarks compare with, by module.
    static let modules: [String: [SourceFile]] = Dictionary(
        grouping: swiftFiles.filter { $0.path.hasPrefix("Sources/") || $0.path.hasPrefix("Benchmarks/CoreDataRouting/") },
        by: { String($0.path.split(separator: "/")[1]) })

    static let manifest = SourceFile(path: "Package.swift", root: root)

    /// Returns the files of a folder, relative to the root. Build products and hidden files are left out.
    static func files(under folder: String, endingIn ending: String) -> [SourceFile] {
        let start = root.appending(path: folder, directoryHint: .isDirectory)
        guard let walk = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
        else { return [] }
        var found: [SourceFile] = []
        for case let url as URL in walk where url.pathExtension == ending {
            let path = url.standardizedFileURL.path.dropFirst(root.standardizedFileURL.path.count)
            found.append(SourceFile(path: path.hasPrefix("/") ? String(path.dropFirst()) : String(path), root: root))
        }
        return found.sorted { $0.path < $1.path }
    }
}

/// A file of the repository: its text, and its code with comments and the contents of strings blanked out.
struct SourceFile: Sendable, CustomStringConvertible {
    /// The path relative to the repository.
    let path: String
    let lines: [String]
    let codeLines: [String]

    var description: String { path }
    var name: String { String(path.split(separator: "/").last ?? "") }
    var isTest: Bool { path.hasPrefix("Tests/") || path.contains("/Tests/") }

    init(path: String, root: URL) {
        // Stop here: a file that cannot be read would escape every rule.
        guard let text = try? String(contentsOf: root.appending(path: path), encoding: .utf8) else {
            fatalError("\(path) cannot be read as UTF-8")
        }
        self.init(path: path, text: text)
    }

    init(path: String, text: String) {
        self.path = path
        lines = text.components(separatedBy: "\n")
        codeLines = SwiftText.blanked(text).components(separatedBy: "\n")
    }

    /// Returns the lines of code that contain one of the words, with their numbers from 1. Rules examine only these lines.
    func codeLines(with words: String...) -> [(number: Int, text: String)] {
        codeLines.enumerated().filter { _, line in words.contains { line.holds($0) } }.map { ($0.offset + 1, $0.element) }
    }

    /// The number of lines, without the empty line after the last line break.
    var lineCount: Int { lines.last == "" ? lines.count - 1 : lines.count }
}

extension String {
    /// Whether the text occurs in the string. Rules ask this of every line, and regular expressions are slow in debug builds.
    func holds(_ text: String) -> Bool {
        var (line, wanted) = (self, text)
        return line.withUTF8 { line in
            wanted.withUTF8 { wanted in
                guard let other = wanted.baseAddress, var place = line.baseAddress else { return wanted.isEmpty }
                var rest = line.count
                while rest >= wanted.count, let found = memchr(place, Int32(other.pointee), rest - wanted.count + 1) {
                    if memcmp(found, other, wanted.count) == 0 { return true }
                    rest -= UnsafeRawPointer(place).distance(to: found) + 1
                    place = UnsafePointer(found.assumingMemoryBound(to: UInt8.self)) + 1
                }
                return false
            }
        }
    }
}
