import StrataSwiftData
import Testing

@Model final class Team {
    var name = "team"
    @Relationship(deleteRule: .nullify, minimumModelCount: 1, maximumModelCount: 2, inverse: \Player.team) var players: [Player] =
        []
    @Relationship(minimumModelCount: 2) var fans: [Fan]? = []
    init() {}
}

@Model final class Player {
    var name = "player"
    var team: Team?
    init() {}
}

@Model final class Fan {
    var name = "fan"
    init() {}
}

/// Limits of the number of related objects.
@Suite struct CountTests {
    @Test(arguments: TestStore.allCases)
    func `S061: a save checks minimumModelCount and maximumModelCount`(_ store: TestStore) async throws {
        try await store.use(Team.self, Player.self, Fan.self) { container in
            let context = ModelContext(container)
            func message() -> String? {
                do { try context.save() } catch { return "\(error)" }
                return nil
            }
            let team = Team()
            context.insert(team)
            #expect(message()?.contains("players must have 1 to 2 objects, has 0") == true)
            team.players = [Player()]
            #expect(message() == nil, "an optional relationship may be empty")
            team.fans = [Fan()]
            #expect(message()?.contains("fans must have no objects or at least 2 objects, has 1") == true)
            team.fans?.append(Fan())
            #expect(message() == nil)
            team.players += [Player(), Player()]
            #expect(message()?.contains("players must have 1 to 2 objects, has 3") == true)
            #expect(context.hasChanges)
            context.rollback()
            context.delete(team.players[0])
            #expect(message()?.contains("players must have 1 to 2 objects, has 0") == true)
            context.delete(team)
            #expect(message() == nil)
        }
    }

    @Test func `the schema has the limits`() throws {
        let schema = Schema([Team.self, Player.self, Fan.self])
        let team = try #require(schema.entity(for: Team.self))
        let players = try #require(team.relationshipsByName["players"])
        #expect(players.minimumModelCount == 1 && players.maximumModelCount == 2)
        let fans = try #require(team.relationshipsByName["fans"])
        #expect(fans.minimumModelCount == 2 && fans.maximumModelCount == 0)
        let back = try #require(schema.entity(for: Player.self)?.relationshipsByName["team"])
        #expect(back.minimumModelCount == 0 && back.maximumModelCount == 1)
    }
}
