import StrataSwiftData
import Testing

/// Identifiers of objects before and after their insertion.
@Suite struct IdentifierTests {
    private func encoded(_ id: PersistentIdentifier) throws -> PersistentIdentifier {
        try JSONDecoder().decode(PersistentIdentifier.self, from: JSONEncoder().encode(id))
    }

    @Test func `a provisional identifier is encoded without an address, and leads to the inserted object until its save`() throws
    {
        let context = ModelContext(try inMemory(ToDo.self))
        let (item, other) = (ToDo("a"), ToDo("b"))
        let provisional = item.persistentModelID
        #expect(provisional == item.persistentModelID && provisional != other.persistentModelID)
        #expect(provisional.storeIdentifier == nil && provisional.entityName == "ToDo")
        #expect("\(provisional)" == "ToDo (not inserted)")
        #expect(try encoded(provisional) == provisional)
        let text = String(decoding: try JSONEncoder().encode(provisional), as: UTF8.self)
        let address = UInt(bitPattern: Unmanaged.passUnretained(item.managedObject).toOpaque())
        #expect(!text.contains("\(address)"))

        context.insert(item)
        let final = item.persistentModelID
        #expect(final != provisional && final.storeIdentifier != nil)
        #expect(context.model(for: provisional) as? ToDo === item && context.model(for: final) as? ToDo === item)
        #expect(context.registeredModel(for: try encoded(provisional)) == item)
        try context.save()
        #expect(item.persistentModelID == final)
        #expect(context.registeredModel(for: provisional) as ToDo? == nil)
        #expect(try context.model(for: encoded(final)) as? ToDo === item)
    }

    @Test func `an object whose insertion was rolled back has an identifier that leads to no object`() throws {
        let context = ModelContext(try inMemory(ToDo.self))
        let item = ToDo("a")
        context.insert(item)
        let final = item.persistentModelID
        context.rollback()
        #expect(item.persistentModelID.storeIdentifier == nil && item.persistentModelID != final)
        #expect(context.registeredModel(for: item.persistentModelID) as ToDo? == nil)
    }

    @Test func `an identifier of another process is of no object here`() throws {
        let context = ModelContext(try inMemory(ToDo.self))
        let item = ToDo("a")
        let text = String(decoding: try JSONEncoder().encode(item.persistentModelID), as: UTF8.self)
        let start = try #require(text.range(of: "strata:"))
        let end = text[start.upperBound...].firstIndex { $0.isHexDigit } ?? start.upperBound
        let foreign = text.replacingCharacters(in: end..<text.index(end, offsetBy: 36), with: UUID().uuidString)
        let decoded = try JSONDecoder().decode(PersistentIdentifier.self, from: Data(foreign.utf8))
        context.insert(item)
        #expect(decoded != item.persistentModelID)
        #expect(context.registeredModel(for: decoded) as ToDo? == nil)
    }
}
