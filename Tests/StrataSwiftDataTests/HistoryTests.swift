import StrataSwiftData
import Testing

@Model final class Account {
    @Attribute(.unique, .preserveValueOnDeletion) var number: String
    var balance = 0

    init(_ number: String) { self.number = number }
}

private enum Shade: String, Codable { case light, dark }

private struct Corner: Codable, Equatable { var x: Int }

@Model private final class Tile {
    @Attribute(.preserveValueOnDeletion) var shade: Shade
    @Attribute(.preserveValueOnDeletion) var former: Shade?
    @Attribute(.preserveValueOnDeletion) var corner: Corner
    @Attribute(.preserveValueOnDeletion) var corners: [Corner] = []
    @Attribute(.preserveValueOnDeletion) var other: Corner?
    @Attribute(.preserveValueOnDeletion) var price: Decimal = 0

    init(_ shade: Shade) {
        self.shade = shade
        corner = Corner(x: 3)
    }
}

@Suite struct HistoryTests {
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `tombstones have raw values and Codable values`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Tile.self)
            let context = ModelContext(container)
            let tile = Tile(.dark)
            tile.corners = [Corner(x: 1), Corner(x: 2)]
            tile.price = 2.5
            context.insert(tile)
            try context.save()
            context.delete(tile)
            try context.save()
            let changes = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).flatMap(\.changes)
            guard case .delete(let deletion as DefaultHistoryDelete<Tile>)? = changes.last else {
                Issue.record("no deletion")
                return
            }
            let tombstone = deletion.tombstone
            #expect(tombstone[\.shade] == .dark && tombstone[\.corner] == Corner(x: 3))
            #expect(tombstone[\.corners] == [Corner(x: 1), Corner(x: 2)] && tombstone[\.price] == 2.5)
            #expect(tombstone[\.former] == .some(nil) && tombstone[\.other] == .some(nil))
            try await container.close()
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `the history lists saves, changes and tombstones`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Account.self)
            let context = ModelContext(container)
            context.author = "test"
            let account = Account("12")
            context.insert(account)
            try context.save()
            account.balance = 5
            try context.save()
            let all = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
            #expect(all.count == 2 && all.map(\.author) == ["test", "test"])
            #expect(all.map(\.bundleIdentifier) == ["", ""])
            guard case .update(let update as DefaultHistoryUpdate<Account>)? = all.last?.changes.first else {
                Issue.record("no update")
                return
            }
            let changed: [DefaultHistoryUpdate<Account>.PropertyUpdate] = update.updatedAttributes
            #expect(changed == [\Account.balance])
            #expect(update.changedPersistentIdentifier == account.persistentModelID)
            context.delete(account)
            try context.save()

            let token = all[1].token
            let newer = try context.fetchHistory(
                HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.token > token }))
            guard case .delete(let deletion as DefaultHistoryDelete<Account>)? = newer.first?.changes.first else {
                Issue.record("no deletion")
                return
            }
            #expect(newer.count == 1 && deletion.tombstone[\.number] == "12" && deletion.tombstone[\.balance] == nil)
            try context.deleteHistory(HistoryDescriptor(predicate: #Predicate { $0.token <= token }))
            #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count == 1)
        }
    }

    /// Catches: a reader that takes the rest of the history for all of it, because the saves after its token were deleted.
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S160: a predicate with a token after which saves were deleted throws`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Account.self)
            let context = ModelContext(container)
            context.author = "test"
            for number in 0..<4 {
                context.insert(Account("\(number)"))
                try context.save()
            }
            let tokens = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).map(\.token)
            let (first, second) = (tokens[0], tokens[1])
            try context.deleteHistory(HistoryDescriptor(predicate: #Predicate { $0.token <= second }))
            func saves(_ predicate: Predicate<DefaultHistoryTransaction>) throws -> [DefaultHistoryToken] {
                try context.fetchHistory(HistoryDescriptor(predicate: predicate)).map(\.token)
            }
            #expect(throws: SwiftDataError.historyTokenExpired) { try saves(#Predicate { $0.token > first }) }
            #expect(throws: SwiftDataError.historyTokenExpired) {
                try saves(#Predicate { first < $0.token && $0.author == "test" })
            }
            #expect(throws: SwiftDataError.historyTokenExpired) {
                try saves(#Predicate { $0.author == "test" && $0.token >= second })
            }
            let last: DefaultHistoryToken? = first
            #expect(throws: SwiftDataError.historyTokenExpired) { try saves(#Predicate { $0.token > last! }) }
            let isFirst = false
            let expired: [Predicate<DefaultHistoryTransaction>] = [
                #Predicate { save in if let last { save.token > last } else { true } },
                #Predicate { isFirst ? true : $0.token > first }, #Predicate { !($0.token <= first) },
                #Predicate { (second...second).contains($0.token) },
            ]
            for predicate in expired {
                #expect(throws: SwiftDataError.historyTokenExpired, "\(predicate)") { try saves(predicate) }
            }
            let (none, all): (DefaultHistoryToken?, Bool) = (nil, true)
            #expect(try saves(#Predicate { save in if let none { save.token > none } else { true } }) == Array(tokens[2...]))
            #expect(try saves(#Predicate { all ? true : $0.token > first }) == Array(tokens[2...]))
            #expect(try saves(#Predicate { !($0.token > second) }).isEmpty)
            #expect(try saves(#Predicate { $0.token > second }) == Array(tokens[2...]))
            #expect(try saves(#Predicate { $0.token >= second || $0.author == "test" }) == Array(tokens[2...]))
            #expect(try saves(#Predicate { $0.token <= first }).isEmpty)
            #expect(try saves(#Predicate { $0.author == "test" }) == Array(tokens[2...]))
            try context.deleteHistory(HistoryDescriptor(predicate: #Predicate { $0.token > first }))
            #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).isEmpty)
            try await container.close()
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `S168: a predicate with a token of another copy or store throws`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Account.self)
            let context = ModelContext(container)
            context.insert(Account("1"))
            try context.save()
            let own = try #require(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token)
            for name in ["incarnation", "store"] {
                var text = String(decoding: try JSONEncoder().encode(own), as: UTF8.self)
                text.replace(try Regex("\"\(name)\":\"[^\"]*\""), with: "\"\(name)\":\"\(UUID().uuidString)\"")
                let foreign = try JSONDecoder().decode(DefaultHistoryToken.self, from: Data(text.utf8))
                #expect(foreign != own)
                #expect(throws: SwiftDataError.historyTokenExpired) {
                    try context.fetchHistory(HistoryDescriptor(predicate: #Predicate { $0.token > foreign }))
                }
                #expect(throws: SwiftDataError.historyTokenExpired) {
                    try context.fetchHistory(HistoryDescriptor(predicate: #Predicate { foreign >= $0.token && $0.author == "" }))
                }
                // As a clean-up after a restore, which would delete saves that no reader has seen.
                #expect(throws: SwiftDataError.historyTokenExpired) {
                    try context.deleteHistory(HistoryDescriptor(predicate: #Predicate { $0.token <= foreign }))
                }
                #expect(throws: SwiftDataError.historyTokenExpired) {
                    try context.deleteHistory(HistoryDescriptor(predicate: #Predicate { !($0.token > foreign) }))
                }
                #expect(throws: SwiftDataError.historyTokenExpired) {
                    try context.fetchHistory(HistoryDescriptor(predicate: #Predicate { $0.author == "x" || $0.token != foreign }))
                }
            }
            #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).count == 1)
            try context.deleteHistory(HistoryDescriptor(predicate: #Predicate { $0.token <= own }))
            #expect(try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).isEmpty)
            try await container.close()
        }
    }
}
