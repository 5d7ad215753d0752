// The server's address: the folder above /static, at whatever path the application is mounted.

export const BASE = new URL("..", import.meta.url);
