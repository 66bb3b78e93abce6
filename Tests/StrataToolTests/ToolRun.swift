import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import StrataTool
import Synchronization
import TestSupport
import Testing

/// One run of the tool in this process: its exit status and what it printed.
struct ToolRun: Sendable {
    var status: Int32
    var output: String
    var errors: String
    /// The texts of progress bars, if standard error is a terminal.
    var progress = ""

    /// Runs the tool with arguments, and lines for its standard input.
    init(_ arguments: String..., input: [String] = []) async { await self.init(arguments, input: input) }

    init(_ arguments: [String], input: [String] = [], onTerminal: Bool = false) async {
        let recording = Recording(input)
        let showProgress: @Sendable (String) -> Void = { text in recording.progress.withLock { $0 += text } }
        let console = Console(
            write: { text in recording.output.withLock { $0 += text } },
            complain: { line in recording.errors.withLock { $0 += line + "\n" } },
            showProgress: onTerminal ? showProgress : nil,
            readLine: { recording.input.withLock { $0.isEmpty ? nil : $0.removeFirst() } })
        status = await StrataProgram.run(arguments, console: console)
        output = recording.output.withLock { $0 }
        errors = recording.errors.withLock { $0 }
        progress = recording.progress.withLock { $0 }
    }

    private final class Recording: Sendable {
        let output = Mutex("")
        let errors = Mutex("")
        let progress = Mutex("")
        let input: Mutex<[String]>

        init(_ input: [String]) { self.input = Mutex(input) }
    }

    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// The output as JSON.
    func json() throws -> Any { try JSONSerialization.jsonObject(with: Data(output.utf8), options: .fragmentsAllowed) }

    func object() throws -> [String: Any] { try #require(try json() as? [String: Any]) }
    func list() throws -> [[String: Any]] { try #require(try json() as? [[String: Any]]) }

    /// Whether the run was refused with one line that names something.
    func isRefused(_ status: Int32 = 2, naming texts: String...) -> Bool {
        self.status == status && errors.hasPrefix("strata: ") && errors.split(separator: "\n").count == 1
            && texts.allSatisfy(errors.contains)
    }
}

/// A folder for the files of a test, which is removed with the value.
final class ToolFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "strata-tool-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> String { url.appending(path: name).path(percentEncoded: false) }
    func bytes(_ name: String) throws -> Data { try Data(contentsOf: url.appending(path: name)) }

    /// Opens a store in the folder, fills it and closes it.
    func fill(
        _ name: String, _ kind: StoreKind, _ model: Model, _ body: @escaping @Sendable (ManagedObjectContext) throws -> Void
    ) async throws {
        let container = try await container(name, kind, model)
        try await container.write { try body($0) }
        try await container.close()
    }

    func container(_ name: String, _ kind: StoreKind, _ model: Model) async throws -> PersistentContainer {
        try await PersistentContainer(model: model, store: Self.description(path(name), kind))
    }

    static func description(_ path: String, _ kind: StoreKind) -> StoreDescription {
        kind == .sqlite ? .sqlite(URL(fileURLWithPath: path)) : .lmdb(URL(fileURLWithPath: path))
    }
}

/// The kinds of stores in files.
let fileKinds: [StoreKind] = [.lmdb, .sqlite]

/// A small library: bands with albums, albums with songs, lists of songs.
enum Shop {
    static let model: Model = {
        do {
            return try Model([
                EntityDescription(
                    name: "Band",
                    properties: [
                        .attribute(.init(name: "name", type: .string, index: .unique)),
                        .attribute(.init(name: "since", type: .date, isOptional: true)),
                        .attribute(.init(name: "isActive", type: .bool)),
                    ]),
                EntityDescription(
                    name: "Album",
                    properties: [
                        .attribute(.init(name: "title", type: .string)), .attribute(.init(name: "price", type: .double)),
                        .relationship(.init(name: "band", destination: "Band", cardinality: .toOne)),
                    ], indexes: [.index("band", "title")]),
                EntityDescription(
                    name: "Song",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .attribute(.init(name: "seconds", type: .int32, index: .indexed)),
                        .attribute(.init(name: "text", type: .string, isOptional: true)),
                        .relationship(.init(name: "album", destination: "Album", cardinality: .toOne)),
                        .relationship(.init(name: "lists", destination: "List", inverse: "songs", cardinality: .toMany)),
                    ]),
                EntityDescription(
                    name: "List",
                    properties: [
                        .attribute(.init(name: "name", type: .string)),
                        .relationship(.init(name: "songs", destination: "Song", inverse: "lists", cardinality: .toMany)),
                    ]),
            ])
        } catch {
            preconditionFailure("the test model is wrong: \(error)")
        }
    }()

    /// Two bands, three albums, six songs of 100 to 600 seconds, and a list of the songs with an even number.
    @Sendable static func fill(_ context: ManagedObjectContext) {
        let bands = ["Blur", "Oasis"].enumerated().map { number, name in
            let band = context.insert("Band")
            band["name"] = .string(name)
            band["since"] = number == 0 ? .double(86_400) : .null
            band["isActive"] = .bool(number == 0)
            return band
        }
        let albums = ["Parklife", "Blur", "Definitely Maybe"].enumerated().map { number, title in
            let album = context.insert("Album")
            album["title"] = .string(title)
            album["price"] = .double(9.5 + Double(number))
            album.setRelatedObject("band", to: bands[number / 2])
            return album
        }
        let list = context.insert("List")
        list["name"] = "even"
        for number in 1...6 {
            let song = context.insert("Song")
            song["title"] = .string("Song \(number)")
            song["seconds"] = .int(Int64(number) * 100)
            song["text"] = number == 3 ? "la \"la\",\nla" : .null
            song.setRelatedObject("album", to: number == 6 ? nil : albums[number % 3])
            if number % 2 == 0 { song.add(list, to: "lists") }
        }
    }
}
