import Foundation

@testable import SQLiteStore

/// Creates an SQLite file of another program.
func makeDatabase(_ path: String, _ sql: String) throws {
    try SQLiteConnection(path: path, role: .creator).runScript(sql)
}

/// Changes an SQLite file as another program does.
func changeDatabase(_ path: String, _ sql: String) throws {
    try SQLiteConnection(path: path, role: .writer).runScript(sql)
}
