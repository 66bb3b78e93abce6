import Foundation
import LMDBStore
import ObjectGraph

struct Note: Codable, Sendable {
    var text: String
    var written = Date()
}

/// Keeps notes in a file: `add NAME TEXT`, `remove NAME`, `list [PREFIX]`.
@main @MainActor struct Notes {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count >= 2 else { return print("usage: Notes FILE add NAME TEXT | remove NAME | list [PREFIX]") }
        let file = URL(fileURLWithPath: arguments[0])
        let container = try await PersistentContainer(store: .lmdb(file))
        let notes = try container.collection("notes", of: Note.self)
        switch (arguments[1], arguments.count) {
        case ("add", 4): notes[arguments[2]] = Note(text: arguments[3])
        case ("remove", 3): notes[arguments[2]] = nil
        case ("list", 2...3):
            try notes.range(withPrefix: arguments.dropFirst(2).first ?? "").forEach { name, note in
                print("\(name): \(note.text)")
            }
        default: print("unknown command; run Notes without arguments for a list")
        }
        try await container.mainContext.save()
        try await container.close()
    }
}
