import Testing

// ----- README.md shows the lines up to the next dashes.
import Foundation
import Strata

@Model final class Recording {
    @Attribute(.unique) var isrc: String
    @Attribute(.indexed) var playCount = 0
    var title: String
}

@MainActor func importAndFetch(file: URL) async throws -> [String] {
    let container = try await PersistentContainer(for: Recording.self, store: .lmdb(file), stack: .siblings)
    let importer = container.newBackgroundContext()
    await importer.perform { context in
        context.mergePolicy = .objectTrump  // recordings that exist are updated
        for n in 1...1_000 { context.insert(Recording(isrc: "ISRC\(n)", playCount: n, title: "Track \(n)")) }
    }
    try await importer.save()  // the main actor is free meanwhile
    let popular = FetchRequest<Recording>(where: #Predicate { $0.playCount > 998 }, sortBy: [.init(\.title)], limit: 20)
    return try container.mainContext.fetch(popular).map(\.title)
}
// -----

@Test func theReadmesExampleImportsAndFetchesTwice() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "strata-readme-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    for _ in 1...2 {
        let titles = try await importAndFetch(file: folder.appending(path: "music.strata"))
        #expect(titles == ["Track 1000", "Track 999"])
    }
}
